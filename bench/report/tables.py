"""Tables of a run: CSV files, and tables of `bench/RESULTS.md`, from its JSON files alone."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.designs.findings import DesignFindings
from bench.designs.results import DesignResult, StepResult
from bench.percentiles import Summary
from bench.report.numbers import Level, list_all_levels
from bench.workload import RequestKind

Row = dict[str, str | int | float]
METHODS: Mapping[RequestKind, str] = {
    "submit": "SubmitJob",
    "status": "GetJobStatus",
    "result": "GetJobResult",
    "cancel": "CancelJob",
    "list": "ListJobs",
}


def write_csv(findings: DesignFindings, folder: Path) -> None:
    """Write `loads.csv`, a row for each load, and `methods.csv`, a row for each method of each load."""
    for name, rows in (("loads", list_load_rows(findings)), ("methods", list_method_rows(findings))):
        found = list(rows)
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(found[0]) if found else [], lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)


def list_load_rows(findings: DesignFindings) -> Iterator[Row]:
    """List a row for each load of each repeat of each design."""
    for name, design in findings.designs.items():
        for step in design.steps:
            yield {
                **_identify_step(name, step),
                "requests_per_s": step.primary.per_s,
                "answered": step.primary.answered,
                "failed": sum(sum(codes.values()) for codes in step.primary.failed.values()),
                **_summary_to_row("latency", step.primary.latency),
                "jobs_per_s": step.jobs.done_per_s,
                "jobs_submitted": step.jobs.submitted,
                "jobs_done": step.jobs.done,
                "jobs_backlog": step.jobs.backlog,
                "jobs_unfinished": step.jobs.unfinished,
                **_summary_to_row("end_to_end", step.jobs.end_to_end),
                **_summary_to_row("waited", step.jobs.waited),
                "node_cpu_s": round(sum(node.cpu_s for node in step.nodes), 3) if step.nodes else "",
                "client_cpu_s": step.client_cpu_s,
                "other_cpu_s": "" if step.other_cpu_s is None else step.other_cpu_s,
                "node_rss_mb": round(sum(node.rss_mb for node in step.nodes), 1) if step.nodes else "",
            }


def list_method_rows(findings: DesignFindings) -> Iterator[Row]:
    """List a row for each method of each load of each repeat of each design."""
    for name, design in findings.designs.items():
        for step in design.steps:
            for requests in (step.primary, step.secondary):
                if requests is None:
                    continue
                for kind, summary in requests.by_kind.items():
                    failed = sum(requests.failed.get(kind, {}).values())
                    yield {
                        **_identify_step(name, step),
                        "method": METHODS[kind],
                        "failed": failed,
                        **_summary_to_row("latency", summary),
                    }


def _identify_step(design: str, step: StepResult) -> Row:
    load = step.load
    return {
        "design": design,
        "repeat": step.repeat,
        "step": load.step,
        "loop": load.loop,
        "level": load.level,
        "job_ms": load.job_ms,
        "run_s": load.run_s,
    }


def _summary_to_row(prefix: str, summary: Summary) -> Row:
    return {
        f"{prefix}_count": summary.count,
        f"{prefix}_mean_ms": summary.mean_ms,
        f"{prefix}_p50_ms": summary.p50_ms,
        f"{prefix}_p95_ms": summary.p95_ms,
        f"{prefix}_p99_ms": summary.p99_ms,
        f"{prefix}_max_ms": summary.max_ms,
    }


def format_loads(findings: DesignFindings) -> str:
    """Format the table of loads: rates and times of requests and jobs, and the CPU time of a request."""
    header = (
        *("load", "", "requests/s", "p50 / p95 / p99 ms", "jobs/s"),
        *("submit to done p50 / p95 / p99 ms", "CPU of a request"),
    )
    return _format_markdown(header, _pair_designs(findings, _format_load_cells))


def format_methods(findings: DesignFindings) -> str:
    """Format the table of methods, for every load with cancels and listings."""
    names = [
        level.title
        for level in list_all_levels(next(iter(findings.designs.values())))
        if level.listings is not None and level.by_kind("cancel") is not None
    ]
    rows = []
    for title in names:
        for kind, method in METHODS.items():
            for row, (name, design) in enumerate(findings.designs.items()):
                summary = _select_method(_find_level(design, title), kind)
                if summary is not None:
                    rows.append(
                        (f"{method}; {title}" if row == 0 else "", name, _format_percentiles(summary, 1))
                    )
    return _format_markdown(("method", "", "p50 / p95 / p99 ms"), rows)


def fill_page(text: str, folder: Path) -> str:
    """Fill the placeholders of a page with tables: `<!-- NAME: loads -->` up to `<!-- end -->`.

    NAME is the folder of a run within `folder`; the table is that of its loads or of its methods.
    """

    def fill(placeholder: re.Match[str]) -> str:
        table = _TABLES[placeholder["table"]](DesignFindings.load(folder / placeholder["name"]))
        return f"{placeholder['begin']}\n{table}\n{placeholder['end']}"

    return _PLACEHOLDER.sub(fill, text)


_TABLES = {"loads": format_loads, "methods": format_methods}
_PLACEHOLDER = re.compile(
    rf"(?P<begin><!-- (?P<name>[\w-]+): (?P<table>{'|'.join(_TABLES)}) -->)\n.*?(?P<end><!-- end -->)",
    re.DOTALL,
)


def _pair_designs(findings: DesignFindings, cells: Callable[[Level], Sequence[str]]) -> list[Sequence[str]]:
    first = next(iter(findings.designs.values()))
    return [
        (level.title if row == 0 else "", name, *cells(_find_level(design, level.title)))
        for level in list_all_levels(first)
        for row, (name, design) in enumerate(findings.designs.items())
    ]


def _format_load_cells(level: Level) -> tuple[str, ...]:
    cpu = level.cpu_us()
    return (
        f"{level.requests_per_s.middle:,.0f}",
        _format_percentiles(level.latency, 1),
        f"{level.jobs_per_s.middle:,.0f}"
        if level.jobs_per_s.middle >= 20
        else f"{level.jobs_per_s.middle:.1f}",
        _format_percentiles(level.end_to_end.summarize(), 0),
        f"{sum(cpu.values()) / 1000:.2f} ms" if cpu else "",
    )


def _find_level(design: DesignResult, title: str) -> Level:
    return next(each for each in list_all_levels(design) if each.title == title)


def _select_method(level: Level, kind: RequestKind) -> Summary | None:
    return level.listings if kind == "list" else level.by_kind(kind)


def _format_percentiles(summary: Summary, digits: int) -> str:
    percentiles = (summary.p50_ms, summary.p95_ms, summary.p99_ms)
    return " / ".join(f"{each:,.{digits}f}" for each in percentiles)


def _format_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)
