"""The blocking reader of the history, for callers without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from runtime.call.blocking import run_on_new_loop
from runtime.model.lifecycles import Lifecycle
from runtime.stores.contract import HistoryEntry, Record
from runtime.stores.history.reader import HistoryReader
from runtime.stores.postgres.database import Database

Result = TypeVar("Result")


class BlockingHistory(Generic[Record]):
    """A HistoryReader with a new connection for each read, since reads are rare."""

    def __init__(
        self, system: str, lifecycle: Lifecycle, record: type[Record], make: Callable[[], Database]
    ) -> None:
        self._system = system
        self._lifecycle = lifecycle
        self._record = record
        self._make = make

    async def get(self, key: str) -> Record | None:
        """Read the last record of an entity that has ended; None if there is none."""
        return self._run(lambda reader: reader.get(key))

    async def history(self, key: str) -> list[HistoryEntry]:
        """Read the changes written so far, oldest first."""
        return self._run(lambda reader: reader.history(key))

    def _run(self, read: Callable[[HistoryReader[Record]], Coroutine[Any, Any, Result]]) -> Result:
        async def read_once() -> Result:
            database = self._make()
            try:
                return await read(HistoryReader(self._system, self._lifecycle, self._record, database))
            finally:
                await database.close()

        return run_on_new_loop(read_once)
