"""Tables and sentences of the comparison with peers, from the findings alone."""

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


def format_heading(findings: PeerFindings, half: str) -> str:
    """Format the content of the table or queue in a half."""
    return HALVES[half].format(aged=findings.sizes.aged)


def make_tables(findings: PeerFindings) -> Iterator[Table]:
    """Make the tables of each half, of the guards, and of the goals."""
    for name, half in findings.halves.items():
        yield _make_half_table(format_heading(findings, name), half)
    if findings.guards:
        yield _make_guards_table(findings)
    yield _make_goals_table(findings)


def format_goal(goal: PeerGoal) -> str:
    """Format a goal as a sentence."""
    where = f"with {BRIEF[goal.table]}"
    table = f"{goal.ours} against {goal.theirs} is {goal.value:g}, and must be {goal.bar_text}"
    return f"{goal.name}, {where}: {table}"


def compute_guard_costs(findings: PeerFindings) -> dict[str, float]:
    """Compute by how much a drain is faster without each guard."""
    if not findings.guards:
        return {}
    whole, *others = findings.guards.items()
    return {name: each.per_s / max(whole[1].per_s, 0.1) - 1 for name, each in others}


def _make_half_table(title: str, half: HalfFindings) -> Table:
    table = narrow_table("", "jobs/s", "spread", "CPU µs", title=f"With {title}")
    for measure, rates in half.rates.items():
        table.add_row(Text(TITLES[measure], style="bold"))
        for name, rate in rates.items():
            spread = f"{rate.least:,.0f} to {rate.most:,.0f}"
            table.add_row(f"  {name}", f"{rate.per_s:,.0f}", spread, f"{rate.cpu_us:,.0f}")
    if half.pickups:
        table.add_row(Text(PICKUP_TITLE, style="bold"))
    for name, each in half.pickups.items():
        waited = f"p50 {each.waited.p50_ms:.1f} ms", f"p99 {each.waited.p99_ms:.1f} ms"
        table.add_row(f"  {name}", *waited, "")
    return table


def _make_guards_table(findings: PeerFindings) -> Table:
    table = narrow_table("our drain, 100 at a time", "jobs/s", "spread", "CPU µs", "faster by")
    costs = compute_guard_costs(findings)
    for name, each in findings.guards.items():
        faster = f"{costs[name]:+.0%}" if name in costs else ""
        spread = f"{each.least:,.0f} to {each.most:,.0f}"
        table.add_row(name, f"{each.per_s:,.0f}", spread, f"{each.cpu_us:,.0f}", faster)
    return table


def _make_goals_table(findings: PeerFindings) -> Table:
    table = narrow_table("goal", "found", "must be", "")
    for goal in findings.goals:
        table.add_row(
            f"{goal.name}, {goal.table}: {goal.ours} against {goal.theirs}",
            *(f"{goal.value:g}", goal.bar_text, "met" if goal.is_met else "MISSED"),
        )
    return table
