"""Stores over a real file, of a system that uses every word there is for SQLite."""

from __future__ import annotations

import importlib
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from runtime.call import Call
from runtime.node.settings import read
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.sqlite import SqliteDatabase, SqliteStore
from runtime.stores.sqlite.migrations import read_migrations
from tests.runtime.hand_world import HandWorld, Lines

LENT = 30_000
"""How long a machine may have a shirt, in milliseconds."""


class Kit:
    """Two stores as a process has them, their file, and a clock that is moved by hand."""

    def __init__(self, path: Path, **values: Any) -> None:
        # The modules are made by the fixture that everybody needs who makes one of these.
        self.words: Any = importlib.import_module("generated.laundry.messages")
        tables: Any = importlib.import_module("generated.laundry.lifecycle")
        self.records: Any = importlib.import_module("generated.laundry.records")
        self.system: Any = importlib.import_module("generated.laundry.system").SYSTEM
        self.shirt, self.sock = tables.SHIRT, tables.SOCK
        self.path = path
        self.world = HandWorld()
        self.lines = Lines()
        self.log = Log("test", "DEBUG", self.world, self.lines)
        self.file = SqliteDatabase(path)
        numbers = [each for each in self.system.variables.values() if each.type in ("int", "number")]
        self.values = {**read(numbers, (), {}, {}), **values}
        metrics = Metrics()
        self.shirts: Any = SqliteStore(
            self.system, self.shirt, self.records.ShirtRecord, self.file, self.world, metrics, self.values
        )
        self.socks: Any = SqliteStore(
            self.system, self.sock, self.records.SockRecord, self.file, self.world, metrics, self.values
        )
        self._made = 0

    async def __aenter__(self) -> Self:
        self.file.open("laundry", read_migrations("laundry"))
        await self.shirts.open(self.log)
        await self.socks.open(self.log)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.file.close()

    def call(self, actor: str) -> Call:
        return Call(world=self.world, log=self.log, caller=actor)

    def pass_ms(self, milliseconds: int) -> None:
        """Lets time pass."""
        self.world.wall_ms += milliseconds

    def new_shirt(self, **fields: Any) -> Any:
        self._made += 1
        return self.records.ShirtRecord(
            **{"shirt_id": f"shirt-{self._made}", "label": f"L{self._made}", "soap": 3, **fields}
        )

    async def bring(self, **fields: Any) -> Any:
        """A shirt that waits."""
        return (await self.shirts.create(self.new_shirt(**fields), self.call("guest"))).record

    async def wash(self, machine: str = "m1") -> Any:
        """The next shirt, which a machine has taken."""
        (shirt,) = await self.shirts.claim(machine, 1, self.call("machine"))
        return shirt

    async def stain(self, shirt: Any, remark: str = "a spot", *, is_final: bool = False) -> int:
        """What becomes of a shirt whose machine says that it has a stain."""
        lease = LeaseProof(shirt.machine, shirt.turn)
        settlement = LeaseSettlement(shirt.shirt_id, lease, "stain", {"remark": remark}, is_final)
        target: int = await self.shirts.settle(settlement, self.call("machine"))
        return target

    async def sought(self, most_looks: int = 3, seeker: str = "s1") -> Any:
        """A sock that somebody looks for."""
        self._made += 1
        sock = self.records.SockRecord(sock_id=f"sock-{self._made}", most_looks=most_looks)
        await self.socks.create(sock, self.call("guest"))
        (sought,) = await self.socks.claim(seeker, 1, self.call("machine"))
        return sought

    def sql(self, statement: str, *given: Any) -> list[Any]:
        """Runs a statement on the file, as a person would by hand."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            return connection.execute(statement, given).fetchall()
        finally:
            connection.close()
