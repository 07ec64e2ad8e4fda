"""`python -m codegen review`: what it tells, what it accepts and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.review.accepted import format_accepted
from codegen.source.loader import load
from tests.support.codegen.review_project import BLOCKER, Project

SHELF = ("environment", "unit: days, default: 7", "unit: days, default: 9")
STORE = ("callers", "[CollectParcel, FindParcel]", "[CollectParcel, FindParcel, StoreParcel]")


def test_a_new_system_needs_one_record_only(project: Project) -> None:
    """A system without accepted form is one difference, and accepting it takes the whole spec."""
    code, said = project.review()
    assert code == 1
    assert "system.added locker [not recorded]" in said
    project.accept_first()
    assert project.accepted["records"] == ["0001-a-locker"]
    assert project.accepted["services"]["components"]["desk"]["serves"] == ["DeskService"]


def test_the_accepted_form_is_the_spec(accepted: Project) -> None:
    """After an accept the stored text is exactly the form of the spec and its records."""
    stored = (accepted.root / "spec/accepted/locker.json").read_text(encoding="utf-8")
    assert stored == format_accepted(load(accepted.root / "spec/locker", accepted.root), ["0001-a-locker"])
    assert list((accepted.root / "spec/accepted").iterdir()) == [accepted.root / "spec/accepted/locker.json"]


def test_nothing_changed(accepted: Project) -> None:
    """Without a difference the command says so, and with --check it says nothing."""
    assert accepted.review() == (0, "locker: no differences from its accepted form.\n")
    assert accepted.review("--check") == (0, "")


def test_an_unrecorded_difference_is_told_with_what_to_paste(accepted: Project) -> None:
    """The report groups differences by verdict and ends with a record to fill in, under the next number."""
    accepted.edit(*SHELF)
    accepted.edit(*STORE)
    assert accepted.review("--check") == (
        1,
        """\
locker: 2 differences from its accepted form.

breaking (behaviour)
  SHELF_DAYS default 7 -> 9
      variable.default SHELF_DAYS [not recorded]

widens access
  recipient gains DeskService.StoreParcel
      permission.added recipient DeskService.StoreParcel [not recorded]

2 differences are not recorded. Write spec/changes/0002-….yaml, or add to a pending record:

# yaml-language-server: $schema=../schema/change.schema.json
system: locker
title: …
what: …
why: …
impact: …
covers:
  - variable.default SHELF_DAYS
  - permission.added recipient DeskService.StoreParcel
""",
    )


def test_a_recorded_difference_is_told_with_its_record(accepted: Project) -> None:
    """A pending record that covers a difference stands beside it, and the command is content."""
    accepted.edit(*SHELF)
    accepted.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    code, said = accepted.review()
    assert code == 0
    assert "variable.default SHELF_DAYS [0002-longer-shelf]" in said
    assert "Pending: 0002-longer-shelf.\n" in said
    assert accepted.review("--check") == (0, "")


def test_accept_takes_the_spec_and_its_records(accepted: Project) -> None:
    """Accepting writes the form, appends the pending records and leaves nothing to tell."""
    accepted.edit(*SHELF)
    accepted.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    code, said = accepted.review("--accept")
    assert (code, said.splitlines()[-1]) == (0, "locker: accepted.")
    assert accepted.accepted["records"] == ["0001-a-locker", "0002-longer-shelf"]
    assert accepted.accepted["environment"]["variables"]["SHELF_DAYS"]["default"] == 9
    assert accepted.review()[1] == "locker: no differences from its accepted form.\n"
    assert accepted.review("--accept")[1].endswith("locker: nothing to accept.\n")


def test_accept_refuses_what_is_not_recorded(accepted: Project) -> None:
    """One unrecorded difference is enough to accept nothing."""
    before = accepted.accepted
    accepted.edit(*SHELF)
    accepted.edit(*STORE)
    accepted.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    code, said = accepted.review("--accept")
    assert code == 1
    assert said.endswith("Nothing is accepted: everything has to be recorded first.\n")
    assert accepted.accepted == before


def test_accept_refuses_a_bad_record(accepted: Project) -> None:
    """A record that says too much keeps everything from being accepted."""
    before = accepted.accepted
    accepted.record("0002-nothing", "variable.default SHELF_DAYS")
    assert accepted.review("--accept")[0] == 1
    assert accepted.accepted == before


def test_a_decision_without_a_difference_is_recorded_all_the_same(accepted: Project) -> None:
    """A record may cover nothing that the spec can say; it is absorbed like any other."""
    accepted.record("0002-doors-are-grey")
    assert accepted.review("--accept")[0] == 0
    assert accepted.accepted["records"] == ["0001-a-locker", "0002-doors-are-grey"]


def test_wording_needs_no_record(accepted: Project) -> None:
    """A text may be worded anew at any time; the next accept takes it along."""
    accepted.edit("system", "title: Parcel locker", "title: Locker for parcels")
    code, said = accepted.review()
    assert code == 0
    assert "wording system [needs no record]" in said
    assert accepted.review("--check") == (0, "")
    accepted.review("--accept")
    assert accepted.accepted["system"]["title"] == "Locker for parcels"


@pytest.mark.req("TQ-212")
def test_a_frozen_design_asks_for_a_blocker(accepted: Project) -> None:
    """While the accepted form is frozen, the proposal has a blocker and a record without one is refused."""
    accepted.freeze()
    accepted.record("0002-frozen", "freeze.added 2026-02-10")
    assert accepted.review("--accept")[0] == 0
    accepted.edit(*SHELF)
    assert (
        "blocker: {description: …, why_design_fails: …, scope: …, impact_on_task: …}" in accepted.review()[1]
    )
    accepted.record("0003-longer-shelf", "variable.default SHELF_DAYS")
    code, said = accepted.review()
    assert code == 1
    assert "error E905: The design of locker is frozen, and this record names no blocker." in said
    accepted.record("0003-longer-shelf", "variable.default SHELF_DAYS", blocker=BLOCKER)
    assert accepted.review("--accept")[0] == 0


def test_a_system_can_be_given_up_and_come_back(accepted: Project) -> None:
    """A removed system is one difference; its records stay, and it can be added again."""
    folder = accepted.root / "spec/locker"
    folder.rename(accepted.root / "kept")
    code, said = accepted.review()
    assert code == 1
    assert "system.removed locker [not recorded]" in said
    accepted.record("0002-no-locker", "system.removed locker")
    assert accepted.review("--accept")[0] == 0
    assert accepted.accepted == {"records": ["0001-a-locker", "0002-no-locker"]}
    assert accepted.review("--check") == (0, "")
    (accepted.root / "kept").rename(folder)
    assert "system.added locker" in accepted.review()[1]


def test_a_broken_spec_is_told_as_such(accepted: Project) -> None:
    """Before any comparison a spec has to be sound; its complaints are those of the loader."""
    accepted.edit("system", "version: 1", "version: one")
    code, said = accepted.review()
    assert code == 1
    assert "spec/locker/system.yaml:3:10: error E005: version has the wrong type." in said
    assert accepted.review("--accept")[0] == 1


def test_json_says_all(accepted: Project) -> None:
    """As JSON each difference has its id, sentence, verdict and record, and the whole an answer."""
    accepted.edit(*SHELF)
    accepted.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    code, said = accepted.review("--format", "json")
    assert code == 0
    assert json.loads(said) == {
        "against": "its accepted form",
        "recorded": True,
        "next_record": "0003",
        "systems": [
            {
                "system": "locker",
                "frozen": False,
                "pending": ["0002-longer-shelf"],
                "differences": [
                    {
                        "id": "variable.default SHELF_DAYS",
                        "sentence": "SHELF_DAYS default 7 -> 9",
                        "verdict": "breaking (behaviour)",
                        "needs_record": True,
                        "record": "0002-longer-shelf",
                    }
                ],
            }
        ],
        "complaints": [],
    }


def test_markdown_is_for_a_pull_request(accepted: Project) -> None:
    """As Markdown the differences are a table for each verdict, and the proposal a block to copy."""
    accepted.edit(*SHELF)
    said = accepted.review("--format", "markdown")[1]
    assert "### breaking (behaviour)\n\n| difference | id | record |\n|---|---|---|\n" in said
    assert "| SHELF_DAYS default 7 -> 9 | `variable.default SHELF_DAYS` | not recorded |" in said
    assert "```yaml\n# yaml-language-server" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["--colour"],
        ["--format", "xml"],
        ["--system", "lockr"],
        ["--accept", "lockr"],
        ["--accept", "--check"],
        ["--accept", "--base", "x"],
    ],
    ids=" ".join,
)
def test_a_wrong_question(accepted: Project, arguments: list[str]) -> None:
    """What cannot be asked is answered with 2, and nothing is written."""
    before = accepted.accepted
    assert accepted.review(*arguments)[0] == 2
    assert accepted.accepted == before


def test_an_unknown_system_is_told_with_the_likely_one(accepted: Project) -> None:
    """A misspelt system comes with a suggestion."""
    assert "There is no system 'lockr'. Did you mean 'locker'?" in accepted.review("--system", "lockr")[1]


def test_help(accepted: Project) -> None:
    """--help lists the options and is no error."""
    code, said = accepted.review("--help")
    assert code == 0
    assert "--accept" in said


def test_one_system_of_several(accepted: Project) -> None:
    """With --system only that one is compared and accepted."""
    (accepted.root / "spec/depot").mkdir()
    for path in (accepted.root / "spec/locker").glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace("name: locker", "name: depot")
        (accepted.root / "spec/depot" / path.name).write_text(
            text.replace("locker_", "depot_"), encoding="utf-8"
        )
    assert accepted.review("--check", "--system", "locker") == (0, "")
    assert accepted.review("--check", "locker") == (0, "")
    code, said = accepted.review("--check")
    assert code == 1
    assert "system.added depot" in said
    assert "locker: no differences" not in said


def test_accept_takes_the_named_system_alone(accepted: Project) -> None:
    """What another system has pending, recorded or not, stays as it is and stands in the way of nothing."""
    (accepted.root / "spec/depot").mkdir()
    for path in (accepted.root / "spec/locker").glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace("name: locker", "name: depot")
        (accepted.root / "spec/depot" / path.name).write_text(
            text.replace("locker_", "depot_"), encoding="utf-8"
        )
    accepted.edit(*SHELF)
    before = accepted.accepted
    assert accepted.review("--accept", "locker", "depot")[0] == 1
    assert accepted.review("--accept", "depot")[0] == 1
    accepted.record("0002-a-depot", "system.added depot", system="depot")
    accepted.record("0003-another-depot", system="depot", resolves=["D-1"])
    accepted.record("0004-a-third-depot", system="depot", resolves=["D-1"])
    assert accepted.review("--accept", "depot")[0] == 1
    (accepted.root / "spec/changes/0004-a-third-depot.yaml").unlink()
    code, said = accepted.review("--accept", "depot")
    assert (code, accepted.accepted) == (0, before), said
    assert (accepted.root / "spec/accepted/depot.json").exists()
    assert "locker" not in said
    accepted.record("0005-a-fourth-depot", system="depot", resolves=["D-1"])
    accepted.record("0006-a-shelf", "variable.default SHELF_DAYS")
    code, said = accepted.review("--accept", "locker")
    assert code == 0, said
    assert accepted.accepted != before


def test_a_failed_write_leaves_the_old_form(accepted: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The accepted form is replaced in one step: a failure on the way leaves the old one and no scraps."""

    def fail(self: Path, target: Path) -> None:
        raise OSError("disk full")

    before = accepted.accepted
    accepted.edit(*SHELF)
    accepted.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        accepted.review("--accept")
    assert accepted.accepted == before
    assert len(list((accepted.root / "spec/accepted").iterdir())) == 1
