"""Storage engines: what a node needs of one, and the registry in which each is found by its name.

An engine registers itself under a name: those of this package by `_OWN`, others by `register_engine` or by an
entry point of the group `charter.engines`. Nothing outside its folder knows what an engine is made of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar

from msgspec import Struct

from runtime.call.context import Call
from runtime.model.lifecycles import Due, Lifecycle
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import DELETION
from runtime.stores.sweeper import Sweep
from runtime.world import World

MEMORY = "memory"
_OWN = {
    MEMORY: "runtime.stores.memory.engine:MemoryEngine",
    "postgres": "runtime.stores.postgres.engine:PostgresEngine",
    "redis": "runtime.stores.redis.engine:RedisEngine",
    "s3": "runtime.stores.s3.engine:S3Engine",
    "sqlite": "runtime.stores.sqlite.engine:SqliteEngine",
}
"""Imported when first used: a node loads the libraries of its own engines alone."""
_GROUP = "charter.engines"


class EngineContext(Struct, frozen=True):
    """What an engine gets of its node."""

    system: System
    world: World
    metrics: Metrics
    values: Mapping[str, Any]
    """The variables of the environment by their names, parsed."""
    name: str
    """The name of the node, as servers show it among their connections."""
    blocking: bool = False
    """Whether no call may wait for an event loop; then nothing is ever opened."""


class Engine:
    """The entities of a node that one kind of storage keeps; a subclass knows how."""

    limits: ClassVar[Mapping[str, str]] = {}
    """By word of the lifecycle, as `create.ceiling`: a sentence about what it means less here."""

    def __init__(self, context: EngineContext) -> None:
        self.context = context
        self.stores: dict[str, Any] = {}
        """By entity: its store, which all components of the node share."""

    def store(self, lifecycle: Lifecycle, record: type[Any]) -> Any:
        """Return the store of an entity."""
        found = self.stores.get(lifecycle.entity)
        if found is None:
            found = self.stores[lifecycle.entity] = self.make_store(lifecycle, record)
        return found

    def make_store(self, lifecycle: Lifecycle, record: type[Any]) -> Any:
        """Make the store of an entity, over a connection that it may share with others."""
        raise NotImplementedError

    async def open(self, log: Log, components: Collection[str]) -> None:
        """Prepare the storage for some components, and start to listen there."""
        del components
        for store in self.stores.values():
            await store.open(log)

    async def close(self) -> None:
        """Close all connections."""
        for store in self.stores.values():
            await store.close()

    async def health(self) -> str | None:
        """Return the first reason why a store cannot be used now; None when all can."""
        for store in self.stores.values():
            if (problem := await store.health()) is not None:
                return str(problem)
        return None

    def sweeps(self, lifecycle: Lifecycle, component: str) -> Iterator[tuple[Due, Sweep]]:
        """Iterate over the changes of an entity that a component drives by the clock."""
        for name, due in due_changes(lifecycle, component):
            assert lifecycle.record is not None
            step = partial(self.store(lifecycle, lifecycle.record).run_due, name)
            yield due, Sweep(lifecycle.entity, name, step)

    def delayed_clocks(self) -> frozenset[str]:
        """Return the clocks that begin at a random time: looking at everything is costly for many at once."""
        return frozenset()

    def background(
        self, component: str, call: Call, stopping: asyncio.Event
    ) -> Iterator[Coroutine[Any, Any, None]]:
        """Iterate over what a component runs for this engine beside its clocks."""
        del component, call, stopping
        return iter(())


MakeEngine = Callable[[EngineContext], Engine]
_registered: dict[str, MakeEngine] = {}


def register_engine(name: str, make: MakeEngine) -> None:
    """Register an engine that is not part of this package."""
    _registered[name] = make


def list_engines() -> dict[str, MakeEngine]:
    """List the engines of this package by name."""
    return {name: _import_engine(place) for name, place in _OWN.items()}


def make_engine(name: str, context: EngineContext) -> Engine:
    """Make the engine of a name."""
    if name in _registered:
        return _registered[name](context)
    if (place := _OWN.get(name)) is not None:
        return _import_engine(place)(context)
    for entry in entry_points(group=_GROUP, name=name):
        other: MakeEngine = entry.load()
        return other(context)
    known = ", ".join(sorted({*_OWN, *_registered}))
    raise LookupError(
        f"There is no storage engine {name!r}; there are {known}. A package has one by an entry point of "
        f"the group {_GROUP}."
    )


def _import_engine(place: str) -> MakeEngine:
    module, _, attribute = place.partition(":")
    engine: MakeEngine = getattr(import_module(module), attribute)
    return engine


def due_changes(lifecycle: Lifecycle, component: str) -> Iterator[tuple[str, Due]]:
    """Iterate over the changes of an entity that a component drives by the clock, in their order."""
    for edge in lifecycle.transitions.values():
        yield from ((edge.name, due) for due in edge.dues if due.by == component)
    for update in lifecycle.updates.values():
        yield from ((update.name, due) for due in update.dues if due.by == component)
    if lifecycle.deletion_due is not None and lifecycle.deletion_due.by == component:
        yield DELETION, lifecycle.deletion_due
