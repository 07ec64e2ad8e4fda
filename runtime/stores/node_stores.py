"""The stores of a node: each entity in the engine that keeps it, and what the clock drives there."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator, Mapping
from typing import Any

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.engine import MEMORY, Engine, EngineContext, make_engine
from runtime.stores.sweeper import Sweep, sweep_regularly
from runtime.world import World


class Stores:
    """Makes the stores that handlers ask for. All components of the node share them."""

    def __init__(
        self,
        system: System,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
        node: str,
        *,
        engine: str | None = None,
        blocking: bool = False,
    ) -> None:
        self._engine_name = engine
        # An engine may look at other entities than that of a store, so it gets all as they are kept here.
        self._system = system = system.placed_by(engine) if engine else system
        self._world = world
        self._metrics = metrics
        self._values = values
        self._context = EngineContext(system, world, metrics, values, f"{system.name} {node}", blocking)
        self._engines: dict[str, Engine] = {}

    def engine_of(self, lifecycle: Lifecycle) -> str:
        """Return the name of the engine that keeps an entity: that of the deployment, else its own."""
        return self._engine_name or lifecycle.engine

    def of(self, lifecycle: Lifecycle, record: type[Any]) -> Any:
        """Return the store of one kind of entity."""
        placed = self._system.place(lifecycle, self.engine_of(lifecycle))
        return self._engine(lifecycle).store(placed, record)

    async def open(self, log: Log, components: Collection[str]) -> None:
        """Open what keeps the entities of some components, and start to listen there."""
        for lifecycle in self._system.lifecycles.values():
            is_kept = self.engine_of(lifecycle) != MEMORY
            if is_kept and not lifecycle.holders.isdisjoint(components):
                assert lifecycle.record is not None
                self.of(lifecycle, lifecycle.record)
        for engine in self._engines.values():
            await engine.open(log, components)

    async def close(self) -> None:
        """Close all connections."""
        for engine in self._engines.values():
            await engine.close()

    async def health(self) -> str | None:
        """Return the first problem of any of them; None when all can be used."""
        for engine in self._engines.values():
            if (problem := await engine.health()) is not None:
                return problem
        return None

    def sweepers(
        self, component: str, call: Call, stopping: asyncio.Event
    ) -> Iterator[Coroutine[Any, Any, None]]:
        """Iterate over what a component drives by the clock, a loop for each clock, and what else it runs."""
        clocks: dict[str, list[tuple[bool, Sweep]]] = {}
        for lifecycle in self._system.lifecycles.values():
            for due, sweep in self._engine(lifecycle).sweeps(lifecycle, component):
                clocks.setdefault(due.every, []).append((due.holder_in is not None, sweep))
        delayed = {clock for engine in self._engines.values() for clock in engine.delayed_clocks()}
        for every, found in clocks.items():
            every_s = float(self._values[every])
            if not every_s:
                continue
            # What follows from the state of a holder comes after what changes that state.
            ordered = [sweep for late in (False, True) for is_late, sweep in found if is_late is late]
            later_s = self._world.uniform(0, every_s) if every in delayed else 0.0
            yield sweep_regularly(ordered, every_s, call, stopping, self._metrics, first_after_s=later_s)
        for engine in self._engines.values():
            yield from engine.background(component, call, stopping)

    def _engine(self, lifecycle: Lifecycle) -> Engine:
        name = self.engine_of(lifecycle)
        engine = self._engines.get(name)
        if engine is None:
            engine = self._engines[name] = make_engine(name, self._context)
        return engine
