"""An event loop whose time jumps to the next timer when nothing is ready; its order comes from a seed."""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from runtime.simulation.world import SimulatedWorld

Outcome = TypeVar("Outcome")

OWNER: ContextVar[dict[asyncio.Task[Any], None] | None] = ContextVar("OWNER", default=None)
"""The tasks of whoever is running: whatever it starts is added to them."""


class Stuck(Exception):
    """Nothing is ready and no timer is set, so the run would wait for ever."""


class Leaked(Exception):
    """Tasks that were still under way at the end of a run."""


class SwallowedFault(Exception):
    """An exception of a task that nobody awaited."""


def simulate(scenario: Callable[[SimulatedWorld], Coroutine[Any, Any, Outcome]], seed: int = 0) -> Outcome:
    """Runs a scenario to its end in virtual time. Nothing may be left running, and no exception unseen."""
    world = SimulatedWorld(seed)
    loop = VirtualLoop(world)
    unseen: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unseen.append(context))
    try:
        outcome = loop.run_until_complete(scenario(world))
        loop.run_until_complete(asyncio.sleep(0))
        if leaked := sorted(repr(task) for task in asyncio.all_tasks(loop)):
            raise Leaked(f"seed {seed}: {len(leaked)} tasks are left: {'; '.join(leaked)}")
    finally:
        _cancel_all(loop)
        loop.close()
    if unseen:
        raise SwallowedFault(f"seed {seed}: {unseen[0]['message']}") from unseen[0].get("exception")
    return outcome


class VirtualLoop(asyncio.SelectorEventLoop):
    """Serves no sockets, signals or threads."""

    _ready: deque[asyncio.Handle]  # of CPython's BaseEventLoop

    def __init__(self, world: SimulatedWorld) -> None:
        self._virtual = _VirtualSelector()
        super().__init__(self._virtual)
        self._shuffle = world.chance("scheduler").shuffle
        self.set_task_factory(_owned_task)

    def time(self) -> float:
        return self._virtual.now

    def _process_events(self, _event_list: list[Any], /) -> None:
        """Comes before each round of callbacks, which makes it the place to shuffle them."""
        if len(self._ready) > 1:
            self._shuffle(self._ready)


class _VirtualSelector(selectors.SelectSelector):
    """Is asked to wait until the next timer, and lets that time pass at once."""

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
        owner[task] = None  # In order: a set would be gone through as memory happens to be.
        task.add_done_callback(owner.pop)
    return task


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
