"""Tells the metrics that all processes share: they are in Redis, and every process tells the same.

They are read when somebody looks, at most once a second, in two exchanges whatever the length of the queues.
While Redis is away the last values stand for a while; a scrape never fails for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil
from time import monotonic
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.asyncio import Redis
from redis.exceptions import RedisError

from runtime.model.lifecycles import Lifecycle
from runtime.model.measuring import Ages, Counts, IndexSizes, Measured, States, Used
from runtime.model.system import System
from runtime.stores.layouts.redis import KeptInRedis

FRESH_S = 1.0
"""For how long what was read is told again without a look at Redis."""
STALE_S = 30.0
"""After how long what was read is not told any more: no value is better than one that is long untrue."""
PERCENTILE = "percentile"

Command = tuple[str | int | float, ...]
Asking = Generator[list[Command], dict[Command, Any], Metric]
"""Yields commands and is sent the answers; what it returns is told."""


def exporters(
    system: System,
    components: Collection[str],
    client_of: Callable[[Lifecycle], Redis],
    values: Mapping[str, Any],
) -> Iterator[Exporter]:
    """One for each server and prefix, with what concerns the entities that some components hold."""
    found: dict[tuple[str, str | None], list[Lifecycle]] = {}
    for lifecycle in system.lifecycles.values():
        kept = lifecycle.stored_as(KeptInRedis)
        if kept is not None and lifecycle.holder in components:
            found.setdefault((kept.url, kept.prefix), []).append(lifecycle)
    for (_, prefix), lifecycles in found.items():
        names = {each.entity for each in lifecycles}
        yield Exporter(
            [each for each in system.measured if each.entity in names],
            client_of(lifecycles[0]),
            str(values[prefix] or "") if prefix else "",
            values,
            {
                each.entity: kept.outbox.stream
                for each in lifecycles
                if (kept := each.stored_as(KeptInRedis)) and kept.outbox
            },
        )


class Exporter(Collector):
    """What one Redis knows of the metrics of a system."""

    def __init__(
        self,
        measured: Sequence[Measured],
        client: Redis,
        prefix: str,
        values: Mapping[str, Any],
        outboxes: Mapping[str, str] | None = None,
    ) -> None:
        self._measured = [each for each in measured if each.type != "window"]
        self._outboxes = outboxes or {}
        self._client = client
        self._prefix = prefix
        self._values = values
        self._told: list[Metric] = []
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    def collect(self) -> Iterator[Metric]:
        """What was read last, unless that is too long ago."""
        return iter(self._told if monotonic() - self._read_at < STALE_S else ())

    async def refresh(self) -> None:
        """Reads everything anew if it is time; those who ask meanwhile share one reading."""
        if monotonic() - self._read_at < FRESH_S:
            return
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        try:
            asking = [self._asking(each) for each in self._measured]
            if self._outboxes:
                asking += [
                    _unwritten(self._outboxes, self._prefix),
                    _unwritten_for(self._outboxes, self._prefix),
                ]
            self._told = await exchange(self._client, asking)
            self._read_at = monotonic()
        except (RedisError, OSError, TimeoutError):
            pass  # the readiness of the node says so already, and the age of the values shows it
        finally:
            self._reading = None

    def _asking(self, measured: Measured) -> Asking:
        match measured.source:
            case Counts() as source:
                return _counts(measured, source, self._prefix)
            case IndexSizes() as source:
                return _sizes(measured, source, self._prefix)
            case Ages() as source:
                return _ages(measured, source, self._prefix)
            case States() as source:
                return _states(measured, source, self._prefix, self._values)
            case Used() as source:
                return _used(measured, source, self._prefix)


async def exchange(client: Redis, asking: Sequence[Asking]) -> list[Metric]:
    """Asks everything that is to be known in as few exchanges as there can be; nothing is asked twice."""
    found: dict[int, Metric] = {}
    wanted = {number: next(each) for number, each in enumerate(asking)}
    while wanted:
        commands = [*dict.fromkeys(command for each in wanted.values() for command in each)]
        pipeline = client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        answers = dict(zip(commands, await pipeline.execute(), strict=True))
        for number in [*wanted]:
            try:
                wanted[number] = asking[number].send(answers)
            except StopIteration as ended:
                found[number] = ended.value
                del wanted[number]
    return [found[number] for number in range(len(asking))]


def _counts(measured: Measured, source: Counts, prefix: str) -> Asking:
    command: Command = ("HGETALL", prefix + source.hash)
    answers = yield [command]
    fields = {_text(name): _text(value) for name, value in answers[command].items()}
    if source.bounds:
        return _histogram(measured, source, fields)
    family = CounterMetricFamily(measured.name, measured.doc, labels=source.labels)
    values = dict.fromkeys(source.series, 0.0)
    for name, value in fields.items():
        metric, *labels = name.split("|")
        if metric == measured.name and len(labels) == len(source.labels):
            values[tuple(labels)] = float(value)
    for labels_of_one, number in values.items():
        family.add_metric(labels_of_one, number)
    return family


def _histogram(measured: Measured, source: Counts, fields: Mapping[str, str]) -> Metric:
    family = HistogramMetricFamily(measured.name, measured.doc, labels=source.labels)
    bounds = (*source.bounds, "+Inf")
    for labels in source.series:
        field = "|".join((measured.name, *labels))
        counts = accumulate(float(fields.get(f"{field}|le|{bound}", 0)) for bound in bounds)
        total = float(fields.get(f"{field}|sum", 0)) / 1e6
        family.add_metric(labels, [*zip(bounds, counts, strict=True)], total)
    return family


def _sizes(measured: Measured, source: IndexSizes, prefix: str) -> Asking:
    count = "ZCARD" if source.ordered else "SCARD"
    commands: dict[str, Command] = {word: (count, prefix + key) for word, key in source.keys.items()}
    answers = yield [*commands.values()]
    return _gauge(measured, source.label, {word: float(answers[each]) for word, each in commands.items()})


def _ages(measured: Measured, source: Ages, prefix: str) -> Asking:
    keys = {word: prefix + key for word, key in source.keys.items()}
    now: Command = ("TIME",)
    sizes = yield [now, *(("ZCARD", key) for key in keys.values())]
    seconds, microseconds = sizes[now]
    ranks: dict[tuple[str, int], Command] = {}
    for word, key in keys.items():
        for percentile in source.percentiles:
            # The youngest is the first from the end, and the rank of the oldest is always the last one.
            rank = max(ceil(percentile / 100 * int(sizes["ZCARD", key])), 1) - 1
            ranks[word, percentile] = ("ZREVRANGE", key, rank, rank, "WITHSCORES")
    oldest: dict[str, Command] = {word: ("ZRANGE", key, 0, 0, "WITHSCORES") for word, key in keys.items()}
    answers = yield [*oldest.values(), *ranks.values()]
    told = len(source.percentiles) > 1
    labels = (*((source.label,) if source.label else ()), *((PERCENTILE,) if told else ()))
    family = GaugeMetricFamily(measured.name, measured.doc, labels=labels)
    for (word, percentile), command in ranks.items():
        rows = answers[command] or answers[oldest[word]]  # it has become shorter since it was counted
        score = float(rows[0][1]) if rows else None
        age = 0.0 if score is None else max(int(seconds) + int(microseconds) / 1e6 - score / 1e6, 0.0)
        values = (*((word,) if source.label else ()), *((f"p{percentile}",) if told else ()))
        family.add_metric(values, age)
    return family


def _states(measured: Measured, source: States, prefix: str, values: Mapping[str, Any]) -> Asking:
    now: Command = ("TIME",)
    answers = yield [now]
    since = 0 if source.expires is None else int(answers[now][0]) - float(values[source.expires])
    commands: dict[str, Command] = {
        word: ("ZCOUNT", prefix + key, f"({since * 1e6:.0f}", "+inf")
        if word in source.expiring and source.expires is not None
        else ("ZCARD", prefix + key)
        for word, key in source.keys.items()
    }
    counted = yield [*commands.values()]
    return _gauge(measured, source.label, {word: float(counted[each]) for word, each in commands.items()})


def _used(measured: Measured, source: Used, prefix: str) -> Asking:
    leased: Command = ("ZCARD", prefix + source.leased)
    listed: list[Command] = [("ZRANGE", prefix + key, 0, -1) for key in source.holders]
    answers = yield [leased, *listed]
    holders = [_text(each) for command in listed for each in answers[command]]
    asked: list[Command] = [("HGET", prefix + source.hash.format(each), source.capacity) for each in holders]
    capacities = yield asked
    total = sum(int(capacities[each] or 0) for each in dict.fromkeys(asked))
    family = GaugeMetricFamily(measured.name, measured.doc)
    family.add_metric((), int(answers[leased]) / total if total else 0.0)
    return family


def _unwritten(outboxes: Mapping[str, str], prefix: str) -> Asking:
    commands: dict[str, Command] = {entity: ("XLEN", prefix + key) for entity, key in outboxes.items()}
    answers = yield [*commands.values()]
    family = GaugeMetricFamily(
        "charter_outbox_entries", "Entries with changes that are not in the history yet.", labels=("entity",)
    )
    for entity, command in commands.items():
        family.add_metric((entity,), float(answers[command]))
    return family


def _unwritten_for(outboxes: Mapping[str, str], prefix: str) -> Asking:
    now: Command = ("TIME",)
    commands: dict[str, Command] = {
        entity: ("XRANGE", prefix + key, "-", "+", "COUNT", 1) for entity, key in outboxes.items()
    }
    answers = yield [now, *commands.values()]
    family = GaugeMetricFamily(
        "charter_outbox_oldest_seconds", "Age of the oldest of them.", labels=("entity",)
    )
    for entity, command in commands.items():
        rows = answers[command]
        since = int(_text(rows[0][0]).partition("-")[0]) / 1000 if rows else int(answers[now][0])
        family.add_metric((entity,), max(int(answers[now][0]) - since, 0.0))
    return family


def _gauge(measured: Measured, label: str | None, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(measured.name, measured.doc, labels=(label,) if label else ())
    for word, value in values.items():
        family.add_metric((word,) if label else (), value)
    return family


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
