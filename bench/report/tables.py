"""The numbers of a run as CSV files, and as tables of `bench/RESULTS.md`, made from its JSON files alone."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.designs.findings import DesignFindings
from bench.designs.results import DesignResult, StepResult
from bench.percentiles import Summary
from bench.report.numbers import Level, every_level
from bench.workload import RequestKind

Row = dict[str, str | int | float]
METHODS: Mapping[RequestKind, str] = {
    "submit": "SubmitJob",
    "status": "GetJobStatus",
    "result": "GetJobResult",
    "cancel": "CancelJob",
    "list": "ListJobs",
}


def write(findings: DesignFindings, folder: Path) -> None:
    """Write `loads.csv`, a row for each load, and `methods.csv`, a row for each method of each load."""
    for name, rows in (("loads", load_rows(findings)), ("methods", method_rows(findings))):
        found = list(rows)
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(found[0]) if found else [], lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)


def load_rows(findings: DesignFindings) -> Iterator[Row]:
    """Each load of each repeat of each design."""
    for name, design in findings.designs.items():
        for step in design.steps:
            yield {
                **_which(name, step),
                "requests_per_s": step.primary.per_s,
                "answered": step.primary.answered,
                "failed": sum(sum(codes.values()) for codes in step.primary.failed.values()),
                **_times("latency", step.primary.latency),
                "jobs_per_s": step.jobs.done_per_s,
                "jobs_submitted": step.jobs.submitted,
                "jobs_done": step.jobs.done,
                "jobs_backlog": step.jobs.backlog,
                "jobs_unfinished": step.jobs.unfinished,
                **_times("end_to_end", step.jobs.end_to_end),
                **_times("waited", step.jobs.waited),
                "node_cpu_s": round(sum(node.cpu_s for node in step.nodes), 3) if step.nodes else "",
                "client_cpu_s": step.client_cpu_s,
                "other_cpu_s": "" if step.other_cpu_s is None else step.other_cpu_s,
                "node_rss_mb": round(sum(node.rss_mb for node in step.nodes), 1) if step.nodes else "",
            }


def method_rows(findings: DesignFindings) -> Iterator[Row]:
    """Each method of each load of each repeat of each design."""
    for name, design in findings.designs.items():
        for step in design.steps:
            for requests in (step.primary, step.secondary):
                if requests is None:
                    continue
                for kind, summary in requests.by_kind.items():
                    failed = sum(requests.failed.get(kind, {}).values())
                    yield {
                        **_which(name, step),
                        "method": METHODS[kind],
                        "failed": failed,
                        **_times("latency", summary),
                    }


def _which(design: str, step: StepResult) -> Row:
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


def _times(what: str, summary: Summary) -> Row:
    return {
        f"{what}_count": summary.count,
        f"{what}_mean_ms": summary.mean_ms,
        f"{what}_p50_ms": summary.p50_ms,
        f"{what}_p95_ms": summary.p95_ms,
        f"{what}_p99_ms": summary.p99_ms,
        f"{what}_max_ms": summary.max_ms,
    }


def markdown_loads(findings: DesignFindings) -> str:
    """The table of loads: what clients and jobs saw, and what a request cost."""
    header = (
        *("load", "", "requests/s", "p50 / p95 / p99 ms", "jobs/s"),
        *("submit to done p50 / p95 / p99 ms", "CPU of a request"),
    )
    return _markdown(header, _paired(findings, _load_cells))


def markdown_methods(findings: DesignFindings) -> str:
    """The table of methods, under every load that has cancels and listings in it."""
    names = [
        level.title
        for level in every_level(next(iter(findings.designs.values())))
        if level.listings is not None and level.by_kind("cancel") is not None
    ]
    rows = []
    for title in names:
        for kind, method in METHODS.items():
            for place, (name, design) in enumerate(findings.designs.items()):
                summary = _of_method(_level(design, title), kind)
                if summary is not None:
                    rows.append((f"{method}; {title}" if place == 0 else "", name, _ranks(summary, 1)))
    return _markdown(("method", "", "p50 / p95 / p99 ms"), rows)


def fill_page(text: str, folder: Path) -> str:
    """Put the tables of results into a page, at its marks: `<!-- NAME: loads -->` up to `<!-- end -->`.

    NAME is the folder of a run within `folder`; the table is that of its loads or of its methods.
    """

    def filled(mark: re.Match[str]) -> str:
        made = _MADE[mark["table"]](DesignFindings.load(folder / mark["name"]))
        return f"{mark['begin']}\n{made}\n{mark['end']}"

    return _MARK.sub(filled, text)


_MADE = {"loads": markdown_loads, "methods": markdown_methods}
_MARK = re.compile(
    rf"(?P<begin><!-- (?P<name>[\w-]+): (?P<table>{'|'.join(_MADE)}) -->)\n.*?(?P<end><!-- end -->)",
    re.DOTALL,
)


def _paired(findings: DesignFindings, cells: Callable[[Level], Sequence[str]]) -> list[Sequence[str]]:
    first = next(iter(findings.designs.values()))
    return [
        (level.title if place == 0 else "", name, *cells(_level(design, level.title)))
        for level in every_level(first)
        for place, (name, design) in enumerate(findings.designs.items())
    ]


def _load_cells(level: Level) -> tuple[str, ...]:
    cpu = level.cpu_us()
    return (
        f"{level.requests_per_s.middle:,.0f}",
        _ranks(level.latency, 1),
        f"{level.jobs_per_s.middle:,.0f}"
        if level.jobs_per_s.middle >= 20
        else f"{level.jobs_per_s.middle:.1f}",
        _ranks(level.end_to_end.summarize(), 0),
        f"{sum(cpu.values()) / 1000:.2f} ms" if cpu else "",
    )


def _level(design: DesignResult, title: str) -> Level:
    return next(each for each in every_level(design) if each.title == title)


def _of_method(level: Level, kind: RequestKind) -> Summary | None:
    return level.listings if kind == "list" else level.by_kind(kind)


def _ranks(summary: Summary, digits: int) -> str:
    ranks = (summary.p50_ms, summary.p95_ms, summary.p99_ms)
    return " / ".join(f"{each:,.{digits}f}" for each in ranks)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)
