"""The engines that the contract suite runs on. A further one is one entry of `ENGINES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from generated.taskqueue.system import SYSTEM as ANY_SYSTEM
from runtime.call.conditions import Condition
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe.metrics import Metrics
from runtime.stores.contract import EntityStore
from runtime.stores.memory import MemoryStore
from runtime.stores.memory.table import MemoryTable
from runtime.world import World

Open = Callable[[Lifecycle], EntityStore[Any]]
"""Opens the store of an entity; those that are opened by one function can see each other."""
Engine = Callable[[World, Metrics, Mapping[str, Any], int], Open]
"""Makes that function in a world, with variables, and with a bound of terminal entities (0 for none)."""

ROLES = (
    "permission_denied",
    "illegal_transition",
    "lease_lost",
    "lease_stale",
    "still_held",
    "store_full",
    "store_unavailable",
)


def make_condition(role: str) -> type[Condition]:
    """A condition that is called like its role."""

    def make(self: Condition, **fields: object) -> None:
        Condition.__init__(self, " ".join(map(str, (role, *fields.values()))), **fields)

    words = {"code": role, "grpc": "ABORTED", "http": 409, "retry": "never", "__init__": make}
    return type(role, (Condition,), words)


SYSTEM: System = replace(ANY_SYSTEM, roles={role: make_condition(role) for role in ROLES})


def open_memory(world: World, metrics: Metrics, values: Mapping[str, Any], max_terminal: int) -> Open:
    tables: dict[str, MemoryTable] = {}

    def open_store(lifecycle: Lifecycle) -> EntityStore[Any]:
        assert lifecycle.record is not None
        store: EntityStore[Any] = MemoryStore(
            SYSTEM,
            lifecycle,
            lifecycle.record,
            world,
            metrics,
            values,
            max_terminal=max_terminal,
            tables=tables,
        )
        return store

    return open_store


ENGINES: dict[str, Engine] = {"memory": open_memory}
