"""The taskqueue's own history: its records, their resolutions, and the accepted form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen.review import Verdict, compare
from codegen.review.accepted import format_accepted, read_accepted
from codegen.review.form import encode_form
from codegen.review.record import RecordFile, read_records
from codegen.source.loader import load
from codegen.source.spec import Spec
from tests.support.codegen.review_forms import apply_edits, spec

ROOT = Path(__file__).parents[3]
METHODS = {
    "TaskQueuePublicService": ["CancelJob", "GetJobResult", "GetJobStatus", "ListJobs", "SubmitJob"],
    "JobInternalService": [
        "CreateJob",
        "DeleteJobIfStatus",
        "GetJobRecord",
        "ListJobRecords",
        "SetCancelRequested",
        "TransitionJobStatus",
    ],
    "QueueInternalService": ["DequeueJob", "EnqueueJob", "RemoveJobIfPresent"],
    "CoordinatorInternalService": ["FetchWork", "ReportWorkOutcome", "WorkerHeartbeat"],
    "ResultInternalService": ["GetResult", "StoreResult"],
}


def list_taskqueue_records() -> list[RecordFile]:
    """The records of the taskqueue, by number."""
    found, complaints = read_records(ROOT)
    assert complaints == []
    return [each for each in found if each.body.system == "taskqueue"]


def read_accepted_spec() -> Spec:
    """The accepted form of the taskqueue."""
    found = read_accepted(ROOT, "taskqueue").spec
    assert found is not None
    return found


def test_every_question_is_resolved_by_one_record() -> None:
    """Each resolution of the checklist is in exactly one record."""
    checklist = (ROOT / "spec/taskqueue/requirements.md").read_text(encoding="utf-8")
    questions = re.findall(r"^- (CH-[0-9]+):", checklist, flags=re.MULTILINE)
    resolved = [question for each in list_taskqueue_records() for question in each.body.resolves]
    assert len(questions) == 94
    assert sorted(resolved) == sorted(questions)


def test_the_accepted_form_is_the_present_spec() -> None:
    """Nothing but wording differs between the accepted form and the spec."""
    found = compare(read_accepted_spec(), load(ROOT / "spec/taskqueue", ROOT))
    assert [each.id for each in found if each.needs_record] == []


def test_the_accepted_form_rests_on_all_records() -> None:
    """The accepted form lists every record in its order, and is written as `--accept` writes it."""
    names = [each.name for each in list_taskqueue_records()]
    assert list(read_accepted(ROOT, "taskqueue").records) == names
    stored = (ROOT / "spec/accepted/taskqueue.json").read_text(encoding="utf-8")
    assert stored == format_accepted(read_accepted_spec(), names)


def test_the_first_record_is_the_design_itself() -> None:
    """The first record accepts the design as it was frozen, and the others change it."""
    first, *others = list_taskqueue_records()
    assert (first.number, first.body.covers) == (1, ("system.added taskqueue",))
    assert all("system.added taskqueue" not in each.body.covers for each in others)


def test_the_first_changes_cover_different_things() -> None:
    """The changes of the resolutions, accepted at the same time, do not cover one difference twice."""
    covered = [
        covered for each in list_taskqueue_records() if each.body.resolves for covered in each.body.covers
    ]
    assert len(covered) == len(set(covered))


@pytest.mark.req("TQ-213")
@pytest.mark.parametrize("record", list_taskqueue_records(), ids=lambda record: str(record.name))
def test_every_record_has_its_three_items(record: RecordFile) -> None:
    """A record has what, why and impact, each of more than a word."""
    assert all(len(text.split()) > 5 for text in (record.body.what, record.body.why, record.body.impact))


@pytest.mark.req("TQ-214")
@pytest.mark.parametrize("record", list_taskqueue_records()[1:], ids=lambda record: str(record.name))
def test_every_change_of_the_frozen_design_names_its_blocker(record: RecordFile) -> None:
    """A record after the first has the four items of a blocker."""
    assert record.body.blocker is not None
    assert all(len(text.split()) > 2 for text in record.body.blocker.model_dump().values())


@pytest.mark.req("TQ-212")
def test_the_frozen_decisions_are_listed() -> None:
    """The accepted form has the date of the freeze and its nine decisions."""
    frozen = read_accepted_spec().system.frozen
    assert frozen is not None
    assert (frozen.since, len(frozen.decisions)) == ("2026-02-10", 9)


@pytest.mark.req("TQ-011")
def test_the_accepted_methods_are_the_frozen_ones() -> None:
    """The accepted form has the five public and the fourteen internal methods and no other."""
    assert {
        name: sorted(row.methods) for name, row in read_accepted_spec().services.services.items()
    } == METHODS


@pytest.mark.req("TQ-011")
def test_a_twentieth_method_is_frozen() -> None:
    """One more method would touch a frozen decision, and no record could cover it as a small change."""
    path = "services/services/QueueInternalService/methods"
    new = apply_edits(
        encode_form(read_accepted_spec()), {f"{path}/PeekJob": {"copy_of": f"{path}/DequeueJob"}}
    )
    assert [(each.id, each.verdict) for each in compare(read_accepted_spec(), spec(new))] == [
        ("method.added QueueInternalService.PeekJob", Verdict.FROZEN)
    ]
