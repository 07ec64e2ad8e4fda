"""Measures of the object queue: goals are judged, and all sides complete their requests."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.objectqueue import measures
from bench.objectqueue.findings import ObjectQueueFindings, Polls, Rates, price_requests
from bench.objectqueue.queue_bench import QueueBench
from runtime.stores.s3.claims import index_search


def findings(
    *,
    tasks: float = 250.0,
    p99: float = 20.0,
    many_ms: float = 10.0,
    many_requests: float = 16,
    puts: float = 2.0,
) -> ObjectQueueFindings:
    rates = Rates(
        at_once=8,
        tasks_per_s=[tasks],
        puts_per_s=[600.0],
        by_hand_per_s=[200.0],
        worker_cpu_ms=1.0,
        store_cpu_ms=1.0,
        put_store_cpu_ms=1.0,
        by_hand_store_cpu_ms=1.0,
    )
    polls = Polls(
        mode="hybrid",
        few=10,
        many=100,
        few_cpu_ms=[10.0],
        many_cpu_ms=[many_ms],
        few_requests=16,
        many_requests=many_requests,
    )
    requests = {"LIST": 0.1, "GET": 1.0, "PUT": puts, "DELETE": 1.0}
    return ObjectQueueFindings(
        stamp="",
        commit="",
        quick=True,
        machine={},
        claim_p50_ms=1.0,
        claim_p99_ms=p99,
        rates=[rates],
        requests_per_task={"index-only": requests},
        idle_per_hour={"index-only": requests},
        polls=[polls],
    )


@pytest.mark.parametrize(
    ("made", "missed"),
    [
        (findings(), None),
        (findings(p99=60), "a claim takes 60 ms at p99, not 50"),
        (findings(tasks=90), "a worker does 90 tasks a second, not 100"),
        (findings(tasks=195), "that is 0.65 of the rate that bare PUTs allow, not 0.7"),
        (findings(puts=5.0), "a task takes 7.1 requests, not 5"),
        (findings(many_ms=20), "a poll, hybrid, after 100 tasks costs 2.00 times as much"),
        (findings(many_requests=24), "a poll, hybrid, after 100 tasks takes 1.50 times as many requests"),
    ],
)
def test_goals_are_judged(made: ObjectQueueFindings, missed: str | None) -> None:
    """Each by itself, with the measured number."""
    assert missed in made.missed if missed else made.missed == []


def test_requests_are_priced() -> None:
    """A million writes and a million reads, as the example says."""
    assert price_requests({"PUT": 1e6, "GET": 1e6, "LIST": 0, "DELETE": 5e6}) == pytest.approx(5.4)


async def test_all_sides_complete_their_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are completed, requests are sent and counted, and finished tasks are not claimed."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "")
    async with QueueBench(tmp_path) as bench:
        assert len(await measures.measure_claims(bench, 2)) == 2
        assert (await measures.measure_bare_puts(bench, 4, 2)).per_s > 0
        assert (await measures.measure_by_hand(bench, 4, 2)).per_s > 0
        asked = await measures.count_requests_per_task(bench, 6, "index-only")
        assert 0.9 <= asked["GET"] < 2
        assert asked["PUT"] >= 2
        past = measures.FinishedTasks(bench, 5)
        await past.fill()
        _, requests = await past.poll(1, "index-only")
        assert requests >= 1
        monkeypatch.setattr(measures, "_AGE_S", 0.0)
        # However slow the machine is, shards are not listed one by one.
        monkeypatch.setattr(index_search, "_SLOW_S", math.inf)
        _, unswept = await past.poll(1, "hybrid")
        await past.sweep()
        _, swept = await past.poll(1, "hybrid")
        assert unswept > swept > 1
