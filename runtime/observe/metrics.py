"""What a node counts: calls, transitions, and what its stores hold. Prometheus' form is for whoever looks."""

from __future__ import annotations

import asyncio
import importlib
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from time import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.registry import Collector

Count = Callable[[str, str, float], None]
"""Takes the code, the caller and the seconds of a finished call."""

Refresh = Callable[[], Awaitable[None]]
"""Reads anew what a collector tells, without ever failing."""

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""The bounds of the buckets that calls are counted in, by how long they took."""
_SHORTEST = SECONDS[0]
_PATIENCE_S = 2.0
"""How long a scrape waits for what has to be read from elsewhere; then it tells what is known."""


class Census(Protocol):
    """Something that can say how many entities it holds in each state."""

    def census(self) -> Iterable[tuple[str, str, int, float]]:
        """Rows of (entity, state, how many, age of the oldest in seconds)."""
        ...


class Tally:
    """The calls of one method: answers by code and caller, and how long they took, by bucket."""

    def __init__(self) -> None:
        self.answers: Counts[tuple[str, str]] = Counts()
        self.buckets = [0] * (len(SECONDS) + 1)
        self.seconds = 0.0


class Swept:
    """What is known of the looks for one change that the clock drives."""

    def __init__(self) -> None:
        self.since = time()
        self.at = 0.0
        """When the last one ended, since the epoch."""
        self.took = 0.0
        self.changed = 0
        self.failed = 0


class Sum:
    """A number that only grows."""

    def __init__(self) -> None:
        self.since = time()
        self.value = 0.0

    def add(self, count: float = 1.0) -> None:
        """Lets it grow."""
        self.value += count


class Spread:
    """How many there were of each size, by bucket."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add_all(self, sizes: Iterable[float]) -> None:
        """Counts each of some."""
        for each in sizes:
            self.buckets[bisect_left(self.bounds, each)] += 1
            self.total += each


class Counted:
    """All that is counted in the process itself, as it is at the moment."""

    def __init__(self) -> None:
        self.calls: dict[str, Tally] = {}
        """By method."""
        self.moves: Counts[tuple[str, str, str]] = Counts()
        """Transitions, by entity, name and actor."""
        self.events: list[dict[str, int]] = []
        self.stores: list[Census] = []
        self.sweeps: dict[tuple[str, str], Swept] = {}
        """By entity and change."""
        self.sums: dict[tuple[str, str], dict[str, Sum]] = {}
        """By the name and the meaning of a metric, and by entity."""
        self.spreads: dict[tuple[str, str], dict[str, Spread]] = {}


class Metrics:
    """The metrics of one node."""

    def __init__(self) -> None:
        self._counted = Counted()
        self._refreshes: list[Refresh] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def registry(self) -> CollectorRegistry:
        """All of it for Prometheus, whose library is loaded by the first who looks: a command never does."""
        from runtime.observe.collectors import registry_of

        return registry_of(self._counted, beforehand=self._refresh_from_thread)

    @property
    def served(self) -> int:
        """How many calls were answered, whatever the answer."""
        return sum(each.answers.total() for each in self._counted.calls.values())

    def calls(self, method: str) -> Count:
        """Counts the calls of a method. What is counted is put in Prometheus' form when somebody looks."""
        tally = self._counted.calls.setdefault(method, Tally())
        answers, buckets = tally.answers, tally.buckets

        def count(code: str, caller: str, seconds: float) -> None:
            answers[code, caller] += 1
            buckets[0 if seconds <= _SHORTEST else bisect_left(SECONDS, seconds)] += 1
            tally.seconds += seconds

        return count

    def transition(self, entity: str, name: str, actor: str, count: int = 1) -> None:
        """Counts a state change, or several of a kind."""
        self._counted.moves[entity, name, actor] += count

    def swept(
        self, entity: str, change: str, at_ms: int, took_s: float, changed: int, *, failed: bool
    ) -> None:
        """Notes a look for what is due, for whoever watches that they happen at all."""
        known = self._counted.sweeps.setdefault((entity, change), Swept())
        known.at, known.took = at_ms / 1000, took_s
        known.changed += changed
        known.failed += failed

    def sum(self, name: str, meaning: str, entity: str) -> Sum:
        """What is counted of a kind of entity. It is there from the start, so that a rate can be taken."""
        return self._counted.sums.setdefault((name, meaning), {}).setdefault(entity, Sum())

    def spread(self, name: str, meaning: str, entity: str, bounds: Sequence[float]) -> Spread:
        """The same for what has a size."""
        return self._counted.spreads.setdefault((name, meaning), {}).setdefault(entity, Spread(bounds))

    def events(self, names: Iterable[str]) -> dict[str, int]:
        """Where some events are to be counted. They are there from the start, so that a rate can be taken."""
        counts = dict.fromkeys(names, 0)
        self._counted.events.append(counts)
        return counts

    def watch(self, source: Census, refresh: Refresh | None = None) -> None:
        """Adds the states that a store holds, counted at each scrape; by `refresh` where it has to wait."""
        self._counted.stores.append(source)
        if refresh is not None:
            self._refreshes.append(refresh)

    def add(self, collector: Collector, refresh: Refresh) -> None:
        """Adds what is read from elsewhere whenever somebody looks."""
        self._refreshes.append(refresh)
        self.registry.register(collector)

    async def text(self) -> bytes:
        """All of it in Prometheus' form."""
        await self._refresh()
        if "registry" not in vars(self):
            # Beside the loop, for it takes a while.
            await asyncio.to_thread(importlib.import_module, "runtime.observe.collectors")
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    async def _refresh(self) -> None:
        if self._refreshes:
            await asyncio.wait(
                [asyncio.ensure_future(each()) for each in self._refreshes], timeout=_PATIENCE_S
            )

    def _refresh_from_thread(self) -> None:
        """The port of its own is served by threads, but whatever is read is read by the loop."""
        if self._loop is None or not self._refreshes or self._loop is _running_loop():
            return
        with suppress(TimeoutError, RuntimeError):
            asyncio.run_coroutine_threadsafe(self._refresh(), self._loop).result(2 * _PATIENCE_S)

    def serve(self, port: int) -> Callable[[], None]:
        """Offers the metrics on a port; returns what stops it."""
        from prometheus_client import start_http_server

        self._loop = _running_loop()
        server, thread = start_http_server(port, registry=self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
