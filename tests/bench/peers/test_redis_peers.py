"""The comparison with peers on Redis: goals, tables, the page, and scripts that match the stored keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from bench.peers.findings import HalfFindings, JobRate, MedianRate, PeerFindings, Pickup, RunSizes
from bench.peers.install import Environment
from bench.peers.on_redis import contestants, ours
from bench.peers.on_redis.ceiling import DRAINS, EVALSHA, ScriptCeiling
from bench.peers.on_redis.contestants import BULLMQ, HUEY, PYTHON_PEERS
from bench.peers.on_redis.goals import evaluate_goals
from bench.peers.on_redis.install import PeerEnvironments
from bench.peers.on_redis.measurement import RedisBench
from bench.peers.on_redis.ours import BESIDE, IN_PROCESS, OVER_GRPC, OVER_HTTP, SLOTS
from bench.peers.on_redis.server import RedisServer, start_server
from bench.peers.server_bench import run_producer
from bench.report import peers_page, peers_tables
from bench.report.peers_stories import PRIORITY_PICTURES
from bench.report.rerender import PEERS
from bench.report.rerender import main as again
from tests.support.bench.canned_comparison import create_median
from tests.support.bench.canned_findings import create_histogram


def half(slower: float = 1.0, beside: str = "") -> HalfFindings:
    """Three rounds in which ours is twice as fast as the peers, and slower by that factor."""

    def rates(ours: dict[str, float], ceilings: tuple[str, ...]) -> dict[str, MedianRate]:
        peers = dict.fromkeys((*PYTHON_PEERS, BULLMQ), 1000.0)
        peers |= {f"{name}{beside}": each for name, each in ours.items() if beside}
        found = {
            **peers,
            **{name: each / slower for name, each in ours.items()},
            **dict.fromkeys(ceilings, 9000.0),
        }
        return {name: create_median(each, each, each) for name, each in found.items()}

    submits = {IN_PROCESS: 2000.0, OVER_GRPC: 1500.0, OVER_HTTP: 1200.0}
    waits = {**dict.fromkeys((*PYTHON_PEERS, BULLMQ), 5.0), IN_PROCESS: 2.0, OVER_HTTP: 3.0}
    pickups = {name: create_histogram(ms, ms, 9 * ms) for name, ms in waits.items()}
    return HalfFindings(
        rates={
            "single-1": rates(submits, (EVALSHA,)),
            "single-16": rates(submits, (EVALSHA,)),
            "bulk": rates(submits, (EVALSHA,)),
            "drain": rates(dict.fromkeys(SLOTS.values(), 2000.0), tuple(DRAINS)),
        },
        pickups={
            name: Pickup(waited=each.summarize(), histogram=each.encode()) for name, each in pickups.items()
        },
    )


def findings(slower: float = 1.0) -> PeerFindings:
    """All that a run gives; with a deep queue ours is slower by that factor."""
    halves = {"shallow": half(), "deep": half(slower, BESIDE)}
    return PeerFindings(
        system="priority",
        stamp="20260210T000000Z",
        command="nox -s bench -- priority",
        commit="0123456789ab",
        quick=False,
        machine={"cores": 2, "load_before": [0.1, 0.2, 0.3], "python": "3.11.7", "system": "Linux"},
        versions={"redis-server": "6.2.14", "bullmq": "6.7.0"},
        sizes=RunSizes(
            rounds=3,
            single=10,
            crowded=10,
            bulk=1000,
            drain=1000,
            drain_at_most_s=1,
            pickups=3,
            aged=1_000_000,
        ),
        halves=halves,  # type: ignore[arg-type]
        goals=evaluate_goals(halves),  # type: ignore[arg-type]
    )


def test_ours_has_to_be_ahead_of_every_peer_and_stay_so_in_a_deep_queue() -> None:
    """Each peer in each measurement, BullMQ in draining, HTTP at 1,000 a second, and what depth may cost."""
    found = findings()
    assert not found.missed
    assert len(found.goals) == 2 * (4 * len(PYTHON_PEERS) + 2) + 3
    slow = findings(slower=1.3).missed
    assert {goal.theirs for goal in slow} == {
        f"{IN_PROCESS}{BESIDE}",
        f"{SLOTS[100]}{BESIDE}",
        "at least 1,000",
    }
    assert "what is left of the rate, with a deep queue" in peers_tables.format_goal(slow[-1])
    assert {goal.theirs for goal in findings(slower=2.5).missed} >= {HUEY, BULLMQ}


def test_the_page_is_about_redis(tmp_path: Path) -> None:
    """It is made from the file alone, with every picture and every goal in it."""
    (tmp_path / PEERS[1]).write_text(findings(slower=2.5).model_dump_json())
    assert again([str(tmp_path)]) == 0
    text = (tmp_path / "report.html").read_text()
    assert text.count("<svg") == len(PRIORITY_PICTURES)
    assert "priority and its peers" in text and "Redis 6.2.14" in text and "PostgreSQL" not in text
    assert text.count(">missed<") == len(findings(slower=2.5).missed)
    sentences = list(peers_page.format_sentences(findings()))
    assert "2.00 times huey" in sentences[0]


def test_the_tables_have_both_halves() -> None:
    console = Console(width=200)
    with console.capture() as captured:
        for table in peers_tables.make_tables(findings()):
            console.print(table)
    assert "With an empty queue" in captured.get()
    assert "With 1,000,000 tasks that wait and are not taken" in captured.get()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with start_server() as started:
        yield started


def test_unclaimable_tasks_survive_a_clear(server: RedisServer) -> None:
    """Clearing a deep queue leaves only the tasks that no worker of the run can claim."""
    queue = ours.create_queue(server, 1)
    assert "2,000 tasks wait" in queue.age(2000)
    with queue.database.open() as client:
        before = set(client.scan_iter())
        run_producer(queue.producers[IN_PROCESS], "bulk", 1000, 1000)
        assert client.zcard("queue:medium") == 4000
        queue.prepare(aged=True)
        left = {name for name in client.scan_iter() if not name.startswith(("clock:", "queue:capabilities"))}
        assert left <= before
        assert client.zcard("queue:medium") == client.zcard("tasks:status:queued") == 2000
        assert not queue.count_left(client)


async def test_a_worker_drains_ours(server: RedisServer, tmp_path: Path) -> None:
    """With a real worker process; no task is left."""
    queue = ours.create_queue(server, 2)
    for jobs in (1500, 6000, 30_000):
        queue.prepare(aged=False)
        rate = await RedisBench(server, tmp_path).drain(queue, SLOTS[100], jobs, 120)
        with queue.database.open() as client:
            assert client.zcard("tasks:status:completed") == jobs
        # Few tasks may all be completed before this process, on a busy machine, has seen the first.
        if rate.count > 1000 and rate.cpu_us > 0:
            break
    assert rate.count > 1000 and rate.per_s > 0 and rate.cpu_us > 0


def test_the_ceiling_submits_and_drains(server: RedisServer) -> None:
    bare = ScriptCeiling(server, 3)
    assert "50 entries" in bare.age(50)
    bare.prepare(aged=True)
    found: list[JobRate] = [
        bare.measure_submits("single", 100, 16),
        *(bare.drain(name, 200) for name in DRAINS),
    ]
    assert [each.count for each in found] == [100, 200, 200]


def test_each_peer_has_a_database_of_its_own(server: RedisServer, tmp_path: Path) -> None:
    """BullMQ takes part only where Node is."""
    place = Environment(tmp_path)
    names = [each.name for each in contestants.create_peers(server, PeerEnvironments(place, place, None))]
    assert names == list(PYTHON_PEERS)
    made = contestants.create_peers(server, PeerEnvironments(place, place, ("node", "modules")))
    assert [each.name for each in made] == [*PYTHON_PEERS, BULLMQ]
    assert len({each.database.url for each in made}) == len(made)
    assert all(each.workers[each.name].environ["REDIS_URL"] == each.database.url for each in made)
