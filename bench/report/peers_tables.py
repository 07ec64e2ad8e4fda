"""The comparison with the peers in tables and sentences, made from the numbers and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from bench.peers.findings import HalfFindings, PeerFindings, PeerGoal
from bench.peers.goals import PICKUP_TITLE, TITLES
from bench.report.terminal import narrow_table

HALVES = {
    "empty": "an empty table",
    "aged": "{aged:,} finished jobs in the table",
    "shallow": "an empty queue",
    "deep": "{aged:,} tasks that wait and are not taken",
}
BRIEF = {
    "empty": "an empty table",
    "aged": "an aged table",
    "shallow": "an empty queue",
    "deep": "a deep queue",
}


def heading(findings: PeerFindings, half: str) -> str:
    """What the contestants carried along."""
    return HALVES[half].format(aged=findings.sizes.aged)


def tables(findings: PeerFindings) -> Iterator[Table]:
    """Rates and times of each half, then what guards cost, then the goals."""
    for name, half in findings.halves.items():
        yield _half(heading(findings, name), half)
    if findings.guards:
        yield _guards(findings)
    yield _goals(findings)


def format_goal(goal: PeerGoal) -> str:
    """A goal in a sentence."""
    where = f"with {BRIEF[goal.table]}"
    found = f"{goal.ours} against {goal.theirs} is {goal.value:g}, and must be {goal.bar_text}"
    return f"{goal.name}, {where}: {found}"


def guard_costs(findings: PeerFindings) -> dict[str, float]:
    """By how much a drain is faster without each guard."""
    if not findings.guards:
        return {}
    whole, *others = findings.guards.items()
    return {name: each.per_s / max(whole[1].per_s, 0.1) - 1 for name, each in others}


def _half(title: str, half: HalfFindings) -> Table:
    found = narrow_table("", "jobs/s", "spread", "CPU µs", title=f"With {title}")
    for measure, rates in half.rates.items():
        found.add_row(Text(TITLES[measure], style="bold"))
        for name, rate in rates.items():
            spread = f"{rate.least:,.0f} to {rate.most:,.0f}"
            found.add_row(f"  {name}", f"{rate.per_s:,.0f}", spread, f"{rate.cpu_us:,.0f}")
    if half.pickups:
        found.add_row(Text(PICKUP_TITLE, style="bold"))
    for name, each in half.pickups.items():
        waited = f"p50 {each.waited.p50_ms:.1f} ms", f"p99 {each.waited.p99_ms:.1f} ms"
        found.add_row(f"  {name}", *waited, "")
    return found


def _guards(findings: PeerFindings) -> Table:
    found = narrow_table("our drain, 100 at a time", "jobs/s", "spread", "CPU µs", "faster by")
    costs = guard_costs(findings)
    for name, each in findings.guards.items():
        faster = f"{costs[name]:+.0%}" if name in costs else ""
        spread = f"{each.least:,.0f} to {each.most:,.0f}"
        found.add_row(name, f"{each.per_s:,.0f}", spread, f"{each.cpu_us:,.0f}", faster)
    return found


def _goals(findings: PeerFindings) -> Table:
    found = narrow_table("goal", "found", "must be", "")
    for goal in findings.goals:
        found.add_row(
            f"{goal.name}, {goal.table}: {goal.ours} against {goal.theirs}",
            *(f"{goal.value:g}", goal.bar_text, "met" if goal.is_met else "MISSED"),
        )
    return found
