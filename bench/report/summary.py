"""Summary of the findings in a table and a few sentences, from the numbers alone."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from bench.designs.findings import DesignFindings
from bench.report.cost_figures import select_busiest
from bench.report.load_figures import select_end_to_end_levels
from bench.report.numbers import list_all_levels
from bench.report.terminal import narrow_table

_NOISY = 0.15


def make_table(findings: DesignFindings) -> Table:
    """Make the table for a terminal, with a line for every load of every design."""
    table = narrow_table(
        *("load", "req/s", "p50", "p95", "p99", "jobs/s", "done p50", "p99", "CPU µs"),
        title=f"{findings.manifest.stamp}: times in ms, CPU of a request; listings are not in it",
    )
    for name, design in findings.designs.items():
        table.add_row(Text(name, style="bold"))
        for level in list_all_levels(design):
            latency, jobs = level.latency, level.end_to_end.summarize()
            cpu = level.cpu_us()
            table.add_row(
                level.title.replace("requests/s", "/s"),
                f"{level.requests_per_s.middle:,.0f}",
                *(f"{each:.1f}" for each in (latency.p50_ms, latency.p95_ms, latency.p99_ms)),
                f"{level.jobs_per_s.middle:,.0f}",
                *(f"{each:,.0f}" for each in (jobs.p50_ms, jobs.p99_ms)),
                f"{sum(cpu.values()):,.0f}" if cpu else "",
            )
    return table


def format_sentences(findings: DesignFindings) -> list[str]:
    """Format the main findings as sentences, where there are two designs to compare."""
    return [*_compare_designs(findings), *_list_warnings(findings)]


def _compare_designs(findings: DesignFindings) -> Iterator[str]:
    tops = select_busiest(findings)
    if len(tops) == 2:
        (first, low), (second, high) = sorted(tops.items(), key=lambda each: each[1].requests_per_s.middle)
        ratio = high.requests_per_s.middle / max(low.requests_per_s.middle, 0.1)
        yield (
            f"With {high.level:g} users the {second} answers {high.requests_per_s.middle:,.0f} requests a "
            f"second, {ratio:.1f} times as many as the {first} ({low.requests_per_s.middle:,.0f})."
        )
        costs = {name: sum(level.cpu_us().values()) for name, level in tops.items()}
        yield (
            f"A request costs {costs[first] / 1000:.2f} ms of processor time in the {first} and "
            f"{costs[second] / 1000:.2f} ms in the {second}, clients and running jobs included."
        )
    for title, by_design in select_end_to_end_levels(findings).items():
        if len(by_design) == 2:
            times = ", ".join(
                f"{name} p50 {level.end_to_end.summarize().p50_ms:.0f} ms and "
                f"p99 {level.end_to_end.summarize().p99_ms:.0f} ms"
                for name, level in by_design.items()
            )
            yield f"From submit to done ({title}): {times}."


def _list_warnings(findings: DesignFindings) -> Iterator[str]:
    everything = [level for design in findings.designs.values() for level in list_all_levels(design)]
    others = max((level.others_share for level in everything), default=0.0)
    if others > _NOISY:
        yield (
            f"Other programs used up to {others:.0%} of the processor time while this was measured, so "
            "rates and latencies are worse than the designs are; processor time per request is less affected."
        )
    if failed := sum(level.failed for level in everything):
        yield f"{failed} requests failed; they are in the latencies and not in the rates."
