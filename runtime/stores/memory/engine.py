"""The engine in memory, as a node uses it: tables that all components of the process share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from runtime.model.lifecycles import Lifecycle
from runtime.observe.log import Log
from runtime.stores.engine import Engine, EngineContext
from runtime.stores.memory.store import MemoryStore
from runtime.stores.memory.table import MemoryTable


class MemoryEngine(Engine):
    """Entities in the memory of one process, bounded as the spec says."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._tables: dict[str, MemoryTable] = {}

    def make_store(self, lifecycle: Lifecycle, record: type[Any]) -> Any:
        system, world, metrics, values = (
            self.context.system,
            self.context.world,
            self.context.metrics,
            self.context.values,
        )
        bound = values.get(lifecycle.retained_by or "") or 0
        return MemoryStore(
            system, lifecycle, record, world, metrics, values, max_terminal=bound, tables=self._tables
        )

    async def open(self, log: Log, components: Collection[str]) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """What is in memory goes with the process."""
