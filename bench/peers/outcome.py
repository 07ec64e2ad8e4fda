"""What is done with the findings of a comparison: kept, shown, and judged."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from bench.peers.findings import Findings
from bench.report import peers_page, peers_tables

RESULTS = Path(__file__).parents[1] / "results"


def kept(found: Findings, console: Console, out: Path | None) -> int:
    """Writes the numbers and the page, shows the tables, and names what was missed; 1 if anything was."""
    where = out or RESULTS / found.stamp
    where.mkdir(parents=True, exist_ok=True)
    text, name = found.model_dump_json(indent=1) + "\n", f"{found.system}.json"
    (where / name).write_text(text)
    if not found.quick:
        (RESULTS / name).write_text(text)
    for table in peers_tables.tables(found):
        console.print(table)
    console.print(f"Report: {peers_page.write(found, where)}", soft_wrap=True, highlight=False)
    for goal in found.missed:
        console.print(f"Missed: {peers_tables.told(goal)}", soft_wrap=True, highlight=False)
    if not found.missed:
        console.print("Every goal is met.")
    return int(bool(found.missed))
