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
from runtime.stores.sqlite import File, SqliteStore
from runtime.stores.store import Held
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
        self.file = File(path)
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
        self.file.open("laundry")
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
        return await self.shirts.create(self.new_shirt(**fields), self.call("guest"))

    async def wash(self, machine: str = "m1") -> Any:
        """The next shirt, which a machine has taken."""
        return await self.shirts.acquire(machine, self.call("machine"))

    async def stain(self, shirt: Any, remark: str | None = "a spot", *, final: bool = False) -> int:
        """What becomes of a shirt whose machine says that it has a stain."""
        target: int = await self.shirts.settle(
            shirt.shirt_id,
            self.words.SHIRT_SOAKING,
            Held(shirt.machine, shirt.turn),
            self.call("machine"),
            final,
            remark=remark,
        )
        return target

    async def sweep(self, edge: str) -> int:
        """Does what is due by one edge of a shirt."""
        swept: int = await self.shirts.sweep(self.shirt.transition(edge), self.call("laundry"))
        return swept

    async def sought(self, most_looks: int = 3, seeker: str = "s1") -> Any:
        """A sock that somebody looks for."""
        self._made += 1
        sock = self.records.SockRecord(sock_id=f"sock-{self._made}", most_looks=most_looks)
        await self.socks.create(sock, self.call("guest"))
        return await self.socks.acquire(seeker, self.call("machine"))

    def sql(self, statement: str, *given: Any) -> list[Any]:
        """Runs a statement on the file, as a person would by hand."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            return connection.execute(statement, given).fetchall()
        finally:
            connection.close()
