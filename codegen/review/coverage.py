"""Coverage: check that change records cover the differences of a system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codegen.diagnostics import Diagnostic, suggest
from codegen.review.accepted import AcceptedForm
from codegen.review.compare import compare
from codegen.review.difference import SpecDifference, Verdict
from codegen.review.record import RecordFile
from codegen.source.spec import Spec


@dataclass(frozen=True)
class Review:
    """The review of one system: its differences, the records that cover them, and complaints about those."""

    system: str
    current: Spec | None
    differences: Sequence[SpecDifference]
    pending: Sequence[RecordFile]
    covered: Mapping[str, str]
    complaints: Sequence[Diagnostic]
    frozen: bool

    @property
    def unrecorded(self) -> list[SpecDifference]:
        return [each for each in self.differences if each.needs_record and each.id not in self.covered]

    @property
    def is_recorded(self) -> bool:
        return not self.unrecorded and not self.complaints


def check_coverage(
    system: str, before: AcceptedForm, new: Spec | None, pending: Iterable[RecordFile]
) -> Review:
    """Compare two forms of a system, and check that the records since the old one cover the differences."""
    old = before.spec
    differences = [*_find_differences(system, old, new), *(_iter_renamed_words(before) if new else ())]
    records = [each for each in pending if each.body.system == system]
    frozen = old is not None and old.system.frozen is not None
    complaints = [*_find_unknown_ids(records, differences), *_find_covered_twice(records)]
    if frozen:
        complaints += _find_missing_blockers(records)
    covered = {difference: each.name for each in reversed(records) for difference in each.body.covers}
    return Review(system, new, differences, records, covered, complaints, frozen)


def _find_differences(system: str, old: Spec | None, new: Spec | None) -> list[SpecDifference]:
    if old and new:
        return compare(old, new)
    if new:
        return [SpecDifference(f"system.added {system}", f"system {system} is added", Verdict.COMPATIBLE)]
    if old:
        return [SpecDifference(f"system.removed {system}", f"system {system} is removed", Verdict.WIRE)]
    return []


def _iter_renamed_words(before: AcceptedForm) -> Iterator[SpecDifference]:
    """Iterate over the files in which keys of the language have new names: one difference for each."""
    for file, words in before.renamed.items():
        text = f"keys of {file}.yaml have new names and mean the same: {', '.join(words)}"
        yield SpecDifference(f"words.renamed {file}", text, Verdict.COMPATIBLE)


def _find_unknown_ids(
    records: Iterable[RecordFile], differences: Iterable[SpecDifference]
) -> Iterator[Diagnostic]:
    known = {each.id for each in differences}
    for record in records:
        for index, covered in enumerate(record.body.covers):
            if covered not in known:
                message = f"'{covered}' is no difference; a record names exactly what it covers."
                hint = suggest(covered, known) or "There are no differences; leave the list empty."
                yield Diagnostic(record.place("covers", index), "E906", message, hint)


def _find_covered_twice(records: Iterable[RecordFile]) -> Iterator[Diagnostic]:
    first: dict[str, RecordFile] = {}
    for record in records:
        for index, covered in enumerate(record.body.covers):
            if (other := first.setdefault(covered, record)) is not record:
                message = f"'{covered}' is already covered by {other.name}."
                yield Diagnostic(
                    record.place("covers", index), "E907", message, "Leave it to one of the two."
                )


def _find_missing_blockers(records: Iterable[RecordFile]) -> Iterator[Diagnostic]:
    for record in records:
        if record.body.blocker is None:
            message = f"The design of {record.body.system} is frozen, and this record names no blocker."
            hint = "Add 'blocker:' with description, why_design_fails, scope and impact_on_task."
            yield Diagnostic(record.place(), "E905", message, hint)
