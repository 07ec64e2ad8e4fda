"""`python -m codegen review`: its reports, acceptance and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.review.accepted import format_accepted
from codegen.source.loader import load
from tests.support.codegen.review_project import BLOCKER, SHELF, STORE, Project


def test_a_new_system_needs_one_record_only(project: Project) -> None:
    """A system without accepted form is one difference, and accepting it accepts the whole spec."""
    code, output = project.review()
    assert code == 1
    assert "system.added locker [not recorded]" in output
    project.accept_first()
    assert project.accepted["records"] == ["0001-a-locker"]
    assert project.accepted["services"]["components"]["desk"]["serves"] == ["DeskService"]


def test_the_accepted_form_is_the_spec(accepted_project: Project) -> None:
    """After an accept the stored text is exactly the form of the spec and its records."""
    stored = (accepted_project.root / "spec/accepted/locker.json").read_text(encoding="utf-8")
    assert stored == format_accepted(
        load(accepted_project.root / "spec/locker", accepted_project.root), ["0001-a-locker"]
    )
    assert list((accepted_project.root / "spec/accepted").iterdir()) == [
        accepted_project.root / "spec/accepted/locker.json"
    ]


def test_nothing_changed(accepted_project: Project) -> None:
    """Without a difference the command says so, and with --check it says nothing."""
    assert accepted_project.review() == (0, "locker: no differences from its accepted form.\n")
    assert accepted_project.review("--check") == (0, "")


def test_an_unrecorded_difference_is_reported_with_a_record_to_paste(accepted_project: Project) -> None:
    """The report groups differences by verdict and ends with a record to fill in, under the next number."""
    accepted_project.edit(*SHELF)
    accepted_project.edit(*STORE)
    assert accepted_project.review("--check") == (
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


def test_a_recorded_difference_is_reported_with_its_record(accepted_project: Project) -> None:
    """A pending record that covers a difference is beside it, and the command succeeds."""
    accepted_project.edit(*SHELF)
    accepted_project.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    code, output = accepted_project.review()
    assert code == 0
    assert "variable.default SHELF_DAYS [0002-longer-shelf]" in output
    assert "Pending: 0002-longer-shelf.\n" in output
    assert accepted_project.review("--check") == (0, "")


def test_accept_stores_the_spec_and_its_records(accepted_project: Project) -> None:
    """Accepting writes the form, appends the pending records, and no difference remains."""
    accepted_project.edit(*SHELF)
    accepted_project.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    code, output = accepted_project.review("--accept")
    assert (code, output.splitlines()[-1]) == (0, "locker: accepted.")
    assert accepted_project.accepted["records"] == ["0001-a-locker", "0002-longer-shelf"]
    assert accepted_project.accepted["environment"]["variables"]["SHELF_DAYS"]["default"] == 9
    assert accepted_project.review()[1] == "locker: no differences from its accepted form.\n"
    assert accepted_project.review("--accept")[1].endswith("locker: nothing to accept.\n")


def test_accept_refuses_an_unrecorded_difference(accepted_project: Project) -> None:
    """One unrecorded difference is enough to accept nothing."""
    before = accepted_project.accepted
    accepted_project.edit(*SHELF)
    accepted_project.edit(*STORE)
    accepted_project.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    code, output = accepted_project.review("--accept")
    assert code == 1
    assert output.endswith("Nothing is accepted: everything has to be recorded first.\n")
    assert accepted_project.accepted == before


def test_accept_refuses_a_bad_record(accepted_project: Project) -> None:
    """A record that covers too much keeps everything from being accepted."""
    before = accepted_project.accepted
    accepted_project.record("0002-nothing", "variable.default SHELF_DAYS")
    assert accepted_project.review("--accept")[0] == 1
    assert accepted_project.accepted == before


def test_a_decision_without_a_difference_is_recorded_all_the_same(accepted_project: Project) -> None:
    """A record may cover nothing that the spec can express; it is stored like any other."""
    accepted_project.record("0002-doors-are-grey")
    assert accepted_project.review("--accept")[0] == 0
    assert accepted_project.accepted["records"] == ["0001-a-locker", "0002-doors-are-grey"]


def test_wording_needs_no_record(accepted_project: Project) -> None:
    """A text may be reworded at any time; the next accept stores it, too."""
    accepted_project.edit("system", "title: Parcel locker", "title: Locker for parcels")
    code, output = accepted_project.review()
    assert code == 0
    assert "wording system [needs no record]" in output
    assert accepted_project.review("--check") == (0, "")
    accepted_project.review("--accept")
    assert accepted_project.accepted["system"]["title"] == "Locker for parcels"


@pytest.mark.req("TQ-212")
def test_a_frozen_design_needs_a_blocker(accepted_project: Project) -> None:
    """While the accepted form is frozen, the proposal has a blocker and a record without one is refused."""
    accepted_project.freeze()
    accepted_project.record("0002-frozen", "freeze.added 2026-02-10")
    assert accepted_project.review("--accept")[0] == 0
    accepted_project.edit(*SHELF)
    assert (
        "blocker: {description: …, why_design_fails: …, scope: …, impact_on_task: …}"
        in accepted_project.review()[1]
    )
    accepted_project.record("0003-longer-shelf", "variable.default SHELF_DAYS")
    code, output = accepted_project.review()
    assert code == 1
    assert "error E905: The design of locker is frozen, and this record names no blocker." in output
    accepted_project.record("0003-longer-shelf", "variable.default SHELF_DAYS", blocker=BLOCKER)
    assert accepted_project.review("--accept")[0] == 0


def test_a_system_can_be_removed_and_added_again(accepted_project: Project) -> None:
    """A removed system is one difference; its records stay, and it can be added again."""
    folder = accepted_project.root / "spec/locker"
    folder.rename(accepted_project.root / "kept")
    code, output = accepted_project.review()
    assert code == 1
    assert "system.removed locker [not recorded]" in output
    accepted_project.record("0002-no-locker", "system.removed locker")
    assert accepted_project.review("--accept")[0] == 0
    assert accepted_project.accepted == {"records": ["0001-a-locker", "0002-no-locker"]}
    assert accepted_project.review("--check") == (0, "")
    (accepted_project.root / "kept").rename(folder)
    assert "system.added locker" in accepted_project.review()[1]


def test_a_broken_spec_is_reported_by_the_loader(accepted_project: Project) -> None:
    """Before any comparison a spec has to be valid; its complaints are those of the loader."""
    accepted_project.edit("system", "version: 1", "version: one")
    code, output = accepted_project.review()
    assert code == 1
    assert "spec/locker/system.yaml:3:10: error E005: version has the wrong type." in output
    assert accepted_project.review("--accept")[0] == 1


def test_json_is_complete(accepted_project: Project) -> None:
    """As JSON each difference has its id, sentence, verdict and record, and the whole an answer."""
    accepted_project.edit(*SHELF)
    accepted_project.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    code, output = accepted_project.review("--format", "json")
    assert code == 0
    assert json.loads(output) == {
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


def test_markdown_is_for_a_pull_request(accepted_project: Project) -> None:
    """As Markdown the differences are a table for each verdict, and the proposal a block to copy."""
    accepted_project.edit(*SHELF)
    output = accepted_project.review("--format", "markdown")[1]
    assert "### breaking (behaviour)\n\n| difference | id | record |\n|---|---|---|\n" in output
    assert "| SHELF_DAYS default 7 -> 9 | `variable.default SHELF_DAYS` | not recorded |" in output
    assert "```yaml\n# yaml-language-server" in output


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
def test_wrong_usage(accepted_project: Project, arguments: list[str]) -> None:
    """Wrong usage exits with 2, and nothing is written."""
    before = accepted_project.accepted
    assert accepted_project.review(*arguments)[0] == 2
    assert accepted_project.accepted == before


def test_an_unknown_system_has_a_suggestion(accepted_project: Project) -> None:
    """A misspelt system comes with a suggestion."""
    assert (
        "There is no system 'lockr'. Did you mean 'locker'?"
        in accepted_project.review("--system", "lockr")[1]
    )


def test_help(accepted_project: Project) -> None:
    """--help lists the options and is no error."""
    code, output = accepted_project.review("--help")
    assert code == 0
    assert "--accept" in output


def test_one_system_of_several(accepted_project: Project) -> None:
    """With --system only that one is compared and accepted."""
    (accepted_project.root / "spec/depot").mkdir()
    for path in (accepted_project.root / "spec/locker").glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace("name: locker", "name: depot")
        (accepted_project.root / "spec/depot" / path.name).write_text(
            text.replace("locker_", "depot_"), encoding="utf-8"
        )
    assert accepted_project.review("--check", "--system", "locker") == (0, "")
    assert accepted_project.review("--check", "locker") == (0, "")
    code, output = accepted_project.review("--check")
    assert code == 1
    assert "system.added depot" in output
    assert "locker: no differences" not in output


def test_accept_stores_the_named_system_only(accepted_project: Project) -> None:
    """Pending differences of another system, recorded or not, stay as they are and are no obstacle."""
    (accepted_project.root / "spec/depot").mkdir()
    for path in (accepted_project.root / "spec/locker").glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace("name: locker", "name: depot")
        (accepted_project.root / "spec/depot" / path.name).write_text(
            text.replace("locker_", "depot_"), encoding="utf-8"
        )
    accepted_project.edit(*SHELF)
    before = accepted_project.accepted
    assert accepted_project.review("--accept", "locker", "depot")[0] == 1
    assert accepted_project.review("--accept", "depot")[0] == 1
    accepted_project.record("0002-a-depot", "system.added depot", system="depot")
    accepted_project.record("0003-another-depot", system="depot", resolves=["D-1"])
    accepted_project.record("0004-a-third-depot", system="depot", resolves=["D-1"])
    assert accepted_project.review("--accept", "depot")[0] == 1
    (accepted_project.root / "spec/changes/0004-a-third-depot.yaml").unlink()
    code, output = accepted_project.review("--accept", "depot")
    assert (code, accepted_project.accepted) == (0, before), output
    assert (accepted_project.root / "spec/accepted/depot.json").exists()
    assert "locker" not in output
    accepted_project.record("0005-a-fourth-depot", system="depot", resolves=["D-1"])
    accepted_project.record("0006-a-shelf", "variable.default SHELF_DAYS")
    code, output = accepted_project.review("--accept", "locker")
    assert code == 0, output
    assert accepted_project.accepted != before


def test_a_failed_write_keeps_the_old_form(
    accepted_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The accepted form is replaced atomically: a failure keeps the old one and no temporary files."""

    def fail(self: Path, target: Path) -> None:
        raise OSError("disk full")

    before = accepted_project.accepted
    accepted_project.edit(*SHELF)
    accepted_project.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        accepted_project.review("--accept")
    assert accepted_project.accepted == before
    assert len(list((accepted_project.root / "spec/accepted").iterdir())) == 1
