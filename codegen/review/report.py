"""Reports of reviews, as text, JSON or Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import yaml

from codegen.diagnostics import Diagnostic, render
from codegen.review.coverage import Review
from codegen.review.difference import SpecDifference
from codegen.review.record import HEADER

FORMATS = ("text", "json", "markdown")
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class ReviewReport:
    """The reviews of a run; `against` names the form that the specs were compared with."""

    reviews: Sequence[Review]
    complaints: Sequence[Diagnostic]
    against: str
    next_number: str

    @property
    def is_recorded(self) -> bool:
        return not self.complaints and all(each.is_recorded for each in self.reviews)

    @property
    def all_complaints(self) -> list[Diagnostic]:
        return [*self.complaints, *(each for review in self.reviews for each in review.complaints)]


def format_report(report: ReviewReport, style: str) -> str:
    """Format the whole report in one of the FORMATS."""
    if style == "json":
        return json.dumps(_report_to_data(report), indent=2, ensure_ascii=False)
    blocks = [
        _format_markdown(review, report) if style == "markdown" else _format_text(review, report)
        for review in report.reviews
    ]
    blocks += [_format_proposal(review, report, style) for review in report.reviews if review.unrecorded]
    if report.all_complaints:
        found = render(report.all_complaints)
        blocks.append(f"```\n{found}\n```" if style == "markdown" else found)
    return "\n\n".join(blocks)


def _report_to_data(report: ReviewReport) -> dict[str, Any]:
    return {
        "against": report.against,
        "recorded": report.is_recorded,
        "next_record": report.next_number,
        "systems": [
            {
                "system": review.system,
                "frozen": review.frozen,
                "pending": [each.name for each in review.pending],
                "differences": [_difference_to_data(review, each) for each in review.differences],
            }
            for review in report.reviews
        ],
        "complaints": json.loads(render(report.all_complaints, "json")),
    }


def _difference_to_data(review: Review, each: SpecDifference) -> dict[str, Any]:
    return {
        "id": each.id,
        "sentence": each.sentence,
        "verdict": each.verdict.value,
        "needs_record": each.needs_record,
        "record": review.covered.get(each.id),
    }


def _format_text(review: Review, report: ReviewReport) -> str:
    lines = [f"{_format_summary(review, report)}.", *_format_pending(review)]
    for verdict, differences in groupby(review.differences, key=lambda each: each.verdict):
        lines += ["", verdict.value]
        for each in differences:
            lines += [f"  {each.sentence}", f"      {each.id} [{_format_record(review, each)}]"]
    return "\n".join(lines)


def _format_markdown(review: Review, report: ReviewReport) -> str:
    lines = [f"## {_format_summary(review, report)}", *_format_pending(review)]
    for verdict, differences in groupby(review.differences, key=lambda each: each.verdict):
        lines += ["", f"### {verdict.value}", "", "| difference | id | record |", "|---|---|---|"]
        for each in differences:
            cells = each.sentence, f"`{each.id}`", _format_record(review, each)
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _format_summary(review: Review, report: ReviewReport) -> str:
    number = len(review.differences)
    count = f"{number or 'no'} difference{'s' if number != 1 else ''}"
    return f"{review.system}: {count} from {report.against}"


def _format_pending(review: Review) -> list[str]:
    return ["", f"Pending: {', '.join(each.name for each in review.pending)}."] if review.pending else []


def _format_record(review: Review, each: SpecDifference) -> str:
    return review.covered.get(each.id) or (NOT_RECORDED if each.needs_record else "needs no record")


def _format_proposal(review: Review, report: ReviewReport, style: str) -> str:
    """Format a change record to paste, with exactly the lines that are missing."""
    number = len(review.unrecorded)
    count = f"{number} difference{'s are' if number != 1 else ' is'}"
    intro = (
        f"{count} not recorded. Write spec/changes/{report.next_number}-….yaml, or add to a pending record:"
    )
    record = "\n".join(_format_skeleton(review))
    return f"{intro}\n\n```yaml\n{record}\n```" if style == "markdown" else f"{intro}\n\n{record}"


def _format_skeleton(review: Review) -> Iterator[str]:
    yield from (HEADER, f"system: {review.system}", "title: …", "what: …", "why: …", "impact: …")
    if review.frozen:
        yield "blocker: {description: …, why_design_fails: …, scope: …, impact_on_task: …}"
    yield "covers:"
    listed = yaml.safe_dump([each.id for each in review.unrecorded], width=1_000_000, allow_unicode=True)
    yield from (f"  {line}" for line in listed.splitlines())
