"""`--base`: the spec as a git revision has it."""

from __future__ import annotations

import pytest

from tests.codegen.review.test_command import SHELF, STORE
from tests.support.codegen.review_project import Project


@pytest.fixture
def versioned(accepted: Project) -> Project:
    """A project under git, everything committed."""
    accepted.git("init", "-q")
    accepted.commit()
    return accepted


def test_against_a_revision(versioned: Project) -> None:
    """With --base the specs are compared with those of the revision, whatever is accepted since."""
    versioned.edit(*SHELF)
    versioned.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    versioned.review("--accept")
    versioned.commit()
    assert versioned.review("--base", "HEAD")[1] == "locker: no differences from revision HEAD.\n"
    code, said = versioned.review("--base", "HEAD~1")
    assert code == 0
    assert "locker: 1 difference from revision HEAD~1.\n\nPending: 0002-longer-shelf.\n" in said
    assert "variable.default SHELF_DAYS [0002-longer-shelf]" in said


def test_only_newer_records_count(versioned: Project) -> None:
    """A record that the revision had already covers nothing that came later."""
    versioned.record("0002-longer-shelf")
    versioned.commit()
    versioned.edit(*STORE)
    code, said = versioned.review("--base", "HEAD")
    assert code == 1
    assert "permission.added recipient DeskService.StoreParcel [not recorded]" in said


def test_a_system_that_was_not_there(versioned: Project) -> None:
    """Against a revision without the system the whole of it is new."""
    versioned.git("checkout", "-q", "--orphan", "other")
    versioned.git("rm", "-rq", "--cached", ".")
    versioned.git("commit", "-q", "--allow-empty", "-m", "Nothing.")
    code, said = versioned.review("--base", "HEAD")
    assert code == 0
    assert "system.added locker [0001-a-locker]" in said


def test_a_system_that_is_gone(versioned: Project) -> None:
    """A system that only the revision has is told as removed."""
    (versioned.root / "spec/locker").rename(versioned.root / "elsewhere")
    (versioned.root / "spec/accepted/locker.json").unlink()
    assert "system.removed locker [not recorded]" in versioned.review("--base", "HEAD")[1]


def test_a_revision_that_is_not_there(versioned: Project) -> None:
    """An unknown revision is a wrong question."""
    code, said = versioned.review("--base", "v9")
    assert code == 2
    assert "'v9' is no revision of the repository" in said


def test_without_git(accepted: Project) -> None:
    """Where there is no repository there is no revision."""
    assert accepted.review("--base", "HEAD")[0] == 2


def test_a_revision_that_cannot_be_read(versioned: Project) -> None:
    """An old spec that the language of today cannot read is told with the place in that revision."""
    versioned.edit("system", "version: 1", "colour: grey")
    versioned.commit()
    versioned.edit("system", "colour: grey", "version: 1")
    code, said = versioned.review("--base", "HEAD")
    assert code == 1
    assert (
        ":spec/locker/system.yaml:3:1: error E004: The key 'colour' is not part of the language here." in said
    )
