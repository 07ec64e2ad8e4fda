"""The history for whoever has no event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from runtime.call.blocking import run_on_new_loop
from runtime.model.lifecycles import Lifecycle
from runtime.stores.contract import HistoryEntry, Record
from runtime.stores.history.reader import HistoryReader
from runtime.stores.postgres.database import Database

Told = TypeVar("Told")


class BlockingHistory(Generic[Record]):
    """Reads like a HistoryReader, over a connection for each look: hardly anything asks for one."""

    def __init__(
        self, system: str, lifecycle: Lifecycle, record: type[Record], make: Callable[[], Database]
    ) -> None:
        self._system = system
        self._lifecycle = lifecycle
        self._record = record
        self._make = make

    async def get(self, key: str) -> Record | None:
        """The record of one that ended for good, as it was then; None if nobody knows of one."""
        return self._run(lambda reader: reader.get(key))

    async def history(self, key: str) -> list[HistoryEntry]:
        """Every change that was written so far, oldest first."""
        return self._run(lambda reader: reader.history(key))

    def _run(self, ask: Callable[[HistoryReader[Record]], Coroutine[Any, Any, Told]]) -> Told:
        async def look() -> Told:
            database = self._make()
            try:
                return await ask(HistoryReader(self._system, self._lifecycle, self._record, database))
            finally:
                await database.close()

        return run_on_new_loop(look)
