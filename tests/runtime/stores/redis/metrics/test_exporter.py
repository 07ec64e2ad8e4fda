"""What all processes share is read from Redis when somebody looks, and a scrape never fails for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis.asyncio import Redis

from runtime.launch.embedded.ports import allocate_ports
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.model.measuring import Ages, Counts, IndexSizes, Measured, States, Used
from runtime.observe.metrics import Metrics
from runtime.stores.redis.metrics import exporter
from runtime.stores.redis.metrics.exporter import Exporter

STATES = {"hot": "s:hot", "eaten": "s:eaten"}
SOLD = (("rye", "man"), ("oat", "duck"))
KINDS = (("rye",), ("oat",))
MEASURED = (
    Measured(
        "loaves", "gauge", "Loaves.", "loaf", IndexSizes({"rye": "shelf:rye", "oat": "shelf:oat"}, "kind")
    ),
    Measured("crumbs", "gauge", "Crumbs.", "loaf", IndexSizes({"": "crumbs"}, None, ordered=False)),
    Measured("age_seconds", "gauge", "Ages.", "loaf", Ages({"rye": "shelf:rye"}, "kind", (50, 95, 99))),
    Measured("oldest_seconds", "gauge", "The oldest.", "loaf", Ages({"rye": "shelf:rye"}, "kind", (100,))),
    Measured("state_total", "gauge", "All.", "loaf", States(STATES, "state", frozenset({"eaten"}), "KEPT")),
    Measured("used_ratio", "gauge", "Use.", "loaf", Used("s:hot", ("ovens:on",), "oven:{}", "room")),
    Measured("sold_total", "counter", "Sold.", "loaf", Counts("counts", ("kind", "to"), SOLD)),
    Measured("burnt_total", "counter", "Burnt.", "loaf", Counts("counts", (), ((),))),
    Measured("bake_seconds", "histogram", "Bake.", "loaf", Counts("counts", ("kind",), KINDS, ("0.5", "10"))),
    Measured("recently", "window", "Of late.", "loaf", Counts("counts", (), ((),), (), "WINDOW")),
)  # fmt: skip
EMPTY = {
    'loaves{kind="rye"}': 0, 'loaves{kind="oat"}': 0, "crumbs": 0,
    'age_seconds{kind="rye",percentile="p50"}': 0, 'age_seconds{kind="rye",percentile="p95"}': 0,
    'age_seconds{kind="rye",percentile="p99"}': 0, 'oldest_seconds{kind="rye"}': 0,
    'state_total{state="hot"}': 0, 'state_total{state="eaten"}': 0, "used_ratio": 0,
    'sold_total{kind="rye",to="man"}': 0, 'sold_total{kind="oat",to="duck"}': 0, "burnt_total": 0,
    'bake_seconds_bucket{kind="rye",le="0.5"}': 0, 'bake_seconds_bucket{kind="rye",le="10"}': 0,
    'bake_seconds_bucket{kind="rye",le="+Inf"}': 0, 'bake_seconds_count{kind="rye"}': 0,
    'bake_seconds_sum{kind="rye"}': 0,
    'bake_seconds_bucket{kind="oat",le="0.5"}': 0, 'bake_seconds_bucket{kind="oat",le="10"}': 0,
    'bake_seconds_bucket{kind="oat",le="+Inf"}': 0, 'bake_seconds_count{kind="oat"}': 0,
    'bake_seconds_sum{kind="oat"}': 0,
}  # fmt: skip
PREFIX = "{shop}:"


@pytest.fixture
def metrics(client: Redis, monkeypatch: pytest.MonkeyPatch) -> Metrics:
    """A registry whose values are read anew each time."""
    monkeypatch.setattr(exporter, "FRESH_S", 0.0)
    made, shared = Metrics(), Exporter(MEASURED, client, PREFIX, {"KEPT": 60})
    made.add_collector(shared, shared.refresh)
    return made


async def scrape(metrics: Metrics) -> dict[str, float]:
    """Every sample but those of the engine itself, as a real parser reads them."""
    return dict(_samples((await metrics.render()).decode()))


def _samples(text: str) -> Iterator[tuple[str, float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            if not sample.name.startswith("charter_"):
                yield sample.name + (f"{{{labels}}}" if labels else ""), sample.value


async def test_every_series_is_there_before_anything_happened(metrics: Metrics) -> None:
    """Alerts that compare with zero need the zero."""
    assert await scrape(metrics) == EMPTY


async def test_sizes_states_and_capacity(metrics: Metrics, client: Redis) -> None:
    """Numbers of the present come from the indexes; what has expired is not among them."""
    now = time.time()
    await client.zadd(f"{PREFIX}shelf:rye", {"a": 1, "b": 2})
    await client.sadd(f"{PREFIX}crumbs", "x", "y", "z")
    await client.zadd(f"{PREFIX}s:hot", {"a": 1, "b": 2, "c": 3})
    await client.zadd(f"{PREFIX}s:eaten", {"new": now * 1e6, "old": (now - 61) * 1e6})
    await client.zadd(f"{PREFIX}ovens:on", {"big": 1, "small": 2, "gone": 3})
    await client.hset(f"{PREFIX}oven:big", "room", "4")
    await client.hset(f"{PREFIX}oven:small", "room", "1")
    found = await scrape(metrics)
    assert (found['loaves{kind="rye"}'], found['loaves{kind="oat"}'], found["crumbs"]) == (2, 0, 3)
    assert (found['state_total{state="hot"}'], found['state_total{state="eaten"}']) == (3, 1)
    assert found["used_ratio"] == pytest.approx(0.6)


async def test_percentiles_of_ages_are_those_of_the_nearest_rank(metrics: Metrics, client: Redis) -> None:
    """Of 100 with ages of 1 to 100 seconds, half are not older than 50."""
    now = time.time()
    await client.zadd(f"{PREFIX}shelf:rye", {f"n{age}": (now - age) * 1e6 for age in range(1, 101)})
    found = await scrape(metrics)
    took = time.time() - now
    ages = [found[f'age_seconds{{kind="rye",percentile="p{each}"}}'] for each in (50, 95, 99)]
    # All are older by what has passed until Redis was asked, and so the nearest ranks stay the same.
    for age, expected in zip((*ages, found['oldest_seconds{kind="rye"}']), (50, 95, 99, 100), strict=True):
        assert expected - 0.1 <= age <= expected + took + 0.1
    assert [round(age - ages[0]) for age in ages] == [0, 45, 49]


async def test_counters_and_histograms_are_what_scripts_wrote(metrics: Metrics, client: Redis) -> None:
    """Buckets are kept apart in Redis and add up in the scrape; a value nobody declared is told, too."""
    await client.hset(
        f"{PREFIX}counts",
        mapping={
            "sold_total|rye|man": "7", "sold_total|rye|fox": "1", "burnt_total": "2", "recently|5": "5:1",
            "bake_seconds|rye|le|0.5": "3", "bake_seconds|rye|le|+Inf": "2",
            "bake_seconds|rye|sum": "25500000",
        },
    )  # fmt: skip
    found = await scrape(metrics)
    assert (found['sold_total{kind="rye",to="man"}'], found['sold_total{kind="rye",to="fox"}']) == (7, 1)
    assert found["burnt_total"] == 2
    buckets = [found[f'bake_seconds_bucket{{kind="rye",le="{each}"}}'] for each in ("0.5", "10", "+Inf")]
    assert buckets == [3, 3, 5]
    assert (found['bake_seconds_count{kind="rye"}'], found['bake_seconds_sum{kind="rye"}']) == (5, 25.5)
    assert not [name for name in found if name.startswith("recently")]


async def test_two_exchanges_do_for_any_length(metrics: Metrics, client: Redis) -> None:
    """The number of commands does not grow with the queues."""
    counts = []
    for size in (1_000, 20_000):
        await client.zadd(f"{PREFIX}shelf:rye", {f"n{each}": each for each in range(size)})
        await client.config_resetstat()
        await scrape(metrics)
        calls = await client.info("commandstats")
        counts.append(sum(row["calls"] for name, row in calls.items() if name != "cmdstat_config"))
    assert counts[0] == counts[1] < 40


async def test_whoever_asks_at_once_shares_one_reading(
    metrics: Metrics, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many scrapes within a second cost Redis as much as one."""
    monkeypatch.setattr(exporter, "FRESH_S", 60.0)
    await client.config_resetstat()
    await asyncio.gather(*(metrics.render() for _ in range(20)))
    await metrics.render()
    assert (await client.info("commandstats"))["cmdstat_hgetall"]["calls"] == 1


async def test_the_port_of_its_own_tells_the_same(metrics: Metrics, client: Redis) -> None:
    """Its threads have the loop read for them."""
    await client.hset(f"{PREFIX}counts", "burnt_total", "4")
    (port,) = allocate_ports(1)
    stop = metrics.serve(port)
    try:
        text = await asyncio.to_thread(lambda: urlopen(f"http://127.0.0.1:{port}/metrics").read())
    finally:
        await asyncio.to_thread(stop)
    assert dict(_samples(text.decode()))["burnt_total"] == 4


async def test_without_redis_the_last_values_stand_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then there are none; the scrape works all the time, and all is well once Redis is back."""
    monkeypatch.setattr(exporter, "FRESH_S", 0.0)
    monkeypatch.setattr(exporter, "STALE_S", 3600.0)
    server = EmbeddedRedis(tmp_path / "redis")
    server.start()
    client: Redis = Redis.from_url(server.url, socket_timeout=60)
    metrics, shared = Metrics(), Exporter(MEASURED, client, PREFIX, {"KEPT": 60})
    metrics.add_collector(shared, shared.refresh)
    try:
        await client.hset(f"{PREFIX}counts", "burnt_total", "4")
        assert (await scrape(metrics))["burnt_total"] == 4
        server.stop()
        assert (await scrape(metrics))["burnt_total"] == 4
        monkeypatch.setattr(exporter, "STALE_S", 0.0)
        assert await scrape(metrics) == {}
        assert b"charter_" in await metrics.render()
        monkeypatch.undo()
        monkeypatch.setattr(exporter, "FRESH_S", 0.0)
        server.start()
        assert (await scrape(metrics))["burnt_total"] == 4
    finally:
        await client.aclose()
        server.remove()
