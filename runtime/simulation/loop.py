"""Event loop with virtual time, which jumps to the next timer, and a seeded order of callbacks."""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from runtime.simulation.world import SimulatedWorld

Result = TypeVar("Result")

OWNER: ContextVar[dict[asyncio.Task[Any], None] | None] = ContextVar("OWNER", default=None)
"""The tasks of the running node: every task that it starts is added to them."""


class Stuck(Exception):
    """Deadlock: nothing is ready and no timer is set."""


class Leaked(Exception):
    """Tasks were left at the end of a run."""


class SwallowedFault(Exception):
    """An exception of a task that was never awaited."""


def simulate(scenario: Callable[[SimulatedWorld], Coroutine[Any, Any, Result]], seed: int = 0) -> Result:
    """Run a scenario to its end in virtual time. No task may be left, and no exception unseen."""
    world = SimulatedWorld(seed)
    loop = VirtualLoop(world)
    unseen: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unseen.append(context))
    try:
        result = loop.run_until_complete(scenario(world))
        loop.run_until_complete(asyncio.sleep(0))
        if leaked := sorted(repr(task) for task in asyncio.all_tasks(loop)):
            raise Leaked(f"seed {seed}: {len(leaked)} tasks are left: {'; '.join(leaked)}")
    finally:
        _cancel_all(loop)
        loop.close()
    if unseen:
        raise SwallowedFault(f"seed {seed}: {unseen[0]['message']}") from unseen[0].get("exception")
    return result


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop; it has no sockets, signals or threads."""

    _ready: deque[asyncio.Handle]  # of CPython's BaseEventLoop

    def __init__(self, world: SimulatedWorld) -> None:
        self._virtual = _VirtualSelector()
        super().__init__(self._virtual)
        self._shuffle = world.chance("scheduler").shuffle
        self.set_task_factory(_owned_task)

    def time(self) -> float:
        return self._virtual.now

    def _process_events(self, _event_list: list[Any], /) -> None:
        """Shuffle the callbacks; asyncio calls this before each round of them."""
        if len(self._ready) > 1:
            self._shuffle(self._ready)


class _VirtualSelector(selectors.SelectSelector):
    """A selector that lets the time until the next timer pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("everything waits and no timer is set")
        self.now += timeout
        return []


def _owned_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    task = asyncio.Task(work, loop=loop, **options)
    owner = OWNER.get()
    if owner is not None:
        owner[task] = None  # Ordered: the iteration order of a set is not deterministic.
        task.add_done_callback(owner.pop)
    return task


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
