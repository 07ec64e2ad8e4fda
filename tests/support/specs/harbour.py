"""The harbour of tests/specs under any field names: generated, and its stores over real databases."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg

import generated
from runtime.call import Call
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.node.settings import read
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof
from runtime.stores.postgres import Database, PostgresStore
from runtime.stores.sqlite import SqliteDatabase, SqliteStore
from runtime.stores.sqlite.migrations import read_migrations
from runtime.world import RealWorld
from tests.runtime.hand_world import HandWorld, Lines
from tests.support import quick_yaml
from tests.support.postgres_clusters import QUICKLY
from tests.support.specs.modules import generate_modules

SPEC = Path(__file__).parents[3] / "tests/specs/harbour"
ROWS = ("CrateRow", "BargeRow")
TYPES = quick_yaml.read((SPEC / "types.yaml").read_text(encoding="utf-8"))
FIELDS: dict[str, Any] = TYPES["book"]["messages"][ROWS[0]]["fields"]
"""The fields of both records, under their usual names."""
WORLD = RealWorld()


@contextmanager
def harbour(
    root: Path,
    name: str,
    names: Mapping[str, str] | None = None,
    more: Iterable[str] = (),
    *,
    at_once: bool = False,
) -> Iterator[str]:
    """Generate the system under another name, with other names of fields, and with more of them."""
    write_spec(root / "spec" / name, name, names or {}, more, at_once=at_once)
    generate_modules(root)
    folder = str(root / "generated")
    generated.__path__.append(folder)
    try:
        yield name
    finally:
        generated.__path__.remove(folder)


def write_spec(
    folder: Path, name: str, names: Mapping[str, str], more: Iterable[str], *, at_once: bool = False
) -> None:
    """Write the spec with fields renamed, and with further optional texts in both records.

    `at_once` lets an entity be looked at while it is created, which PostgreSQL does in a function.
    """
    folder.mkdir(parents=True)
    for path in SPEC.glob("*.yaml"):
        data = quick_yaml.read(path.read_text(encoding="utf-8").replace("harbour", name))
        if path.stem == "lifecycle":
            if at_once:
                del data["entities"]["barge"]["transitions"]["look"]["from_request"]
            seamarks = {each: data["entities"].pop(each) for each in ("lamp", "buoy")}
            data = {"entities": {**_rename(data["entities"], names), **seamarks}}
        if path.stem == "types":
            for row in ROWS:
                fields = _rename(data["book"]["messages"][row]["fields"], names)
                extra = [each for each in more if each not in fields]
                fields |= {
                    each: {"number": number, "type": "string", "optional": True}
                    for number, each in enumerate(extra, len(fields) + 1)
                }
                data["book"]["messages"][row]["fields"] = fields
        (folder / path.name).write_text(quick_yaml.write(data), encoding="utf-8")


def _rename(data: Any, names: Mapping[str, str]) -> Any:
    if isinstance(data, dict):
        return {names.get(key, key): _rename(value, names) for key, value in data.items()}
    if isinstance(data, list):
        return [_rename(each, names) for each in data]
    return names.get(data, data) if isinstance(data, str) else data


@asynccontextmanager
async def new_database(server: EmbeddedPostgres) -> AsyncIterator[str]:
    """A database of its own: its address; it is dropped afterwards."""
    name = f"t_{WORLD.new_id().replace('-', '')}"
    connection: asyncpg.Connection[Any] = await asyncpg.connect(server.url)
    try:
        await connection.execute(f"CREATE DATABASE {name} {QUICKLY}")
        try:
            yield server.url_of(name)
        finally:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


class Quay:
    """One store of the harbour, and the names that its fields have."""

    def __init__(
        self,
        store: Any,
        record: Any,
        words: Any,
        world: Any,
        names: Mapping[str, str],
        pass_time: Callable[[], None],
    ) -> None:
        self.store, self.record, self.words = store, record, words
        self._world, self._names, self.pass_time = world, names, pass_time
        self.log = Log("test", "DEBUG", world, Lines())
        self.usual = {self.name(each) for each in FIELDS}

    @property
    def call(self) -> Call:
        return Call(world=self._world, log=self.log, caller="quay")

    def name(self, field: str) -> str:
        """The name of a field."""
        return self._names.get(field, field)

    def make(self, /, **values: Any) -> Any:
        """A record with values under the usual names; a name that is not usual is used as it is."""
        named = {"crate_id": WORLD.new_id(), "label": WORLD.new_id(), **values}
        return self.record(**{self.name(field): value for field, value in named.items()})

    def get(self, record: Any, field: str) -> Any:
        return getattr(record, self.name(field))

    def make_lease(self, record: Any) -> LeaseProof:
        return LeaseProof(self.get(record, "crane"), self.get(record, "lifts"))


@asynccontextmanager
async def quays(
    system: str, path: Path, url: str, names: Mapping[str, str] | None = None
) -> AsyncIterator[dict[str, Quay]]:
    """The stores of a generated harbour by their entity; all of them are ready."""
    tables: Any = importlib.import_module(f"generated.{system}.lifecycle")
    records: Any = importlib.import_module(f"generated.{system}.records")
    words: Any = importlib.import_module(f"generated.{system}.messages")
    known: Any = importlib.import_module(f"generated.{system}.system").SYSTEM
    numbers = [each for each in known.variables.values() if each.type in ("int", "number")]
    values, world, metrics = read(numbers, (), {}, {}), HandWorld(), Metrics()
    file, database = SqliteDatabase(path), Database(url)

    def pass_time() -> None:
        world.wall_ms += 1

    def in_file(entity: str) -> Quay:
        record = getattr(records, f"{entity.capitalize()}Record")
        lifecycle = getattr(tables, entity.upper())
        store: Any = SqliteStore(known, lifecycle, record, file, world, metrics, values)
        return Quay(store, record, words, world, names or {}, pass_time)

    def in_database(entity: str) -> Quay:
        record = getattr(records, f"{entity.capitalize()}Record")
        lifecycle = getattr(tables, entity.upper())
        store: Any = PostgresStore(known, lifecycle, record, database, WORLD, metrics, values)
        return Quay(store, record, words, WORLD, names or {}, lambda: None)

    file.open(system, read_migrations(system))
    by_entity = {each: in_file(each) for each in ("crate", "lamp")}
    by_entity |= {each: in_database(each) for each in ("barge", "buoy")}
    try:
        for quay in by_entity.values():
            await quay.store.open(quay.log)
        yield by_entity
    finally:
        for quay in by_entity.values():
            await quay.store.close()
        await database.close()
        await file.close()
