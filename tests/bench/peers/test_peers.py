"""The comparison with peers on PostgreSQL: rates, goals, tables and the page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from bench.peers.apps.producer import produce
from bench.peers.contestants import PGQUEUER_100
from bench.peers.findings import PeerFindings, PeerGoal
from bench.peers.goals import compute_ratio
from bench.peers.guards import WITHOUT
from bench.peers.measurement import compute_rate
from bench.report import peers_tables
from bench.report.peers_stories import ORCHESTRATOR_PICTURES
from bench.report.rerender import PEERS
from bench.report.rerender import main as again
from tests.support.bench.canned_comparison import create_findings, create_median

NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)


def test_a_drain_is_timed_from_its_first_to_its_last_finished_job() -> None:
    """Jobs of the first moment only start the clock: 20 in two seconds, not 30."""
    stamps = [NOON + timedelta(seconds=number // 10) for number in range(30)]
    found = compute_rate(stamps, NOON + timedelta(seconds=1), spent_s=0.001)
    assert (found.per_s, found.count) == (10.0, 30)
    assert found.cpu_us == 100.0, "of the ten that were finished after processor time was taken"


def test_nothing_finished_is_no_rate() -> None:
    """A worker that finished nothing has the rate zero."""
    assert compute_rate([], NOON, 1.0).per_s == 0.0
    assert compute_rate([NOON], NOON, 1.0).per_s == 0.0


def test_ratios_are_of_the_same_round() -> None:
    """A round in which the machine was slow for both does not count against either."""
    assert compute_ratio(create_median(100, 10, 100), create_median(50, 5, 50)) == 2.0


def test_a_turn_is_compared_with_the_turn_beside_it() -> None:
    """Two rounds, in which one was measured three times and the other once."""
    often, once = create_median(100, 1, 1, 50, 1, 1), create_median(50, 25)
    assert (compute_ratio(often, once), compute_ratio(once, often)) == (2.0, 0.5)


def test_a_goal_that_is_missed_is_named() -> None:
    """With the table, both contestants, the number and the bar."""
    missed = create_findings(slower=1.01).missed
    assert [goal.theirs for goal in missed] == [PGQUEUER_100]
    assert peers_tables.format_goal(missed[0]) == (
        "drain, with an aged table: charter, 200 slots, 100 an exchange against pgqueuer, batch 100 is 0.99, "
        "and must be >= 1"
    )
    assert not create_findings().missed


@pytest.mark.parametrize(
    ("value", "less", "equal", "met"),
    [
        (1.0, False, False, False),
        (1.0, False, True, True),
        (1.1, False, False, True),
        (0.9, True, False, True),
        (1.0, True, False, False),
    ],
)
def test_when_a_goal_is_met(value: float, less: bool, equal: bool, met: bool) -> None:
    """Beyond the bar; at the bar only for a goal with `equal`."""
    goal = PeerGoal(
        name="g", table="empty", ours="a", theirs="b", value=value, bar=1.0, less=less, equal=equal
    )
    assert goal.is_met is met


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    """It is made from the file alone, with every picture and every goal in it."""
    (tmp_path / PEERS[0]).write_text(create_findings(slower=2.0).model_dump_json())
    assert again([str(tmp_path)]) == 0
    text = (tmp_path / "report.html").read_text()
    assert text.count("<svg") == len(ORCHESTRATOR_PICTURES)
    assert not re.search(r'(src|href)="https?:', text)
    assert text.count(">missed<") == len(create_findings(slower=2.0).missed) > 0
    for picture in ORCHESTRATOR_PICTURES:
        assert (tmp_path / f"{picture.name}.png").read_bytes().startswith(b"\x89PNG")


def test_findings_can_be_read_again() -> None:
    """The stored file has everything."""
    found = create_findings()
    assert PeerFindings.model_validate_json(found.model_dump_json()) == found


def test_the_tables_have_everything() -> None:
    """Both halves, what each guard costs, and the goals."""
    console = Console(width=200)
    with console.capture() as captured:
        for table in peers_tables.make_tables(create_findings()):
            console.print(table)
    text = captured.get()
    assert "With an empty table" in text
    assert "With 1,000,000 finished jobs in the table" in text
    assert text.count("+25%") == len(WITHOUT)


class CountingProducer:
    """A producer that records its calls."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        self.calls.append(1)
        return None

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        self.calls.append(len(payloads))
        return None


@pytest.mark.parametrize(
    ("kind", "count", "width", "calls"),
    [("single", 40, 16, [1] * 88), ("bulk", 2500, 1000, [1000, 1000, 1000, 500]), ("pickup", 2, 1, [1, 1])],
)
async def test_a_producer_submits_as_often_as_it_reports(
    kind: str, count: int, width: int, calls: list[int]
) -> None:
    """The warm-up does not count."""
    producer = CountingProducer()

    @asynccontextmanager
    async def open_producer(_address: str) -> AsyncIterator[CountingProducer]:
        yield producer

    report = await produce(open_producer, "", kind, count, width)
    assert report["count"] == count
    assert producer.calls == calls
