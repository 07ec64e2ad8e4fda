"""`--base`: the spec as a git revision has it."""

from __future__ import annotations

import pytest

from tests.support.codegen.review_project import SHELF, STORE, Project


@pytest.fixture
def versioned_project(accepted_project: Project) -> Project:
    """A project under git, everything committed."""
    accepted_project.git("init", "-q")
    accepted_project.commit()
    return accepted_project


def test_against_a_revision(versioned_project: Project) -> None:
    """With --base the specs are compared with those of the revision, whatever is accepted since."""
    versioned_project.edit(*SHELF)
    versioned_project.record("0002-longer-shelf", "variable.default SHELF_DAYS")
    versioned_project.review("--accept")
    versioned_project.commit()
    assert versioned_project.review("--base", "HEAD")[1] == "locker: no differences from revision HEAD.\n"
    code, output = versioned_project.review("--base", "HEAD~1")
    assert code == 0
    assert "locker: 1 difference from revision HEAD~1.\n\nPending: 0002-longer-shelf.\n" in output
    assert "variable.default SHELF_DAYS [0002-longer-shelf]" in output


def test_only_newer_records_count(versioned_project: Project) -> None:
    """A record that the revision had already covers nothing that came later."""
    versioned_project.record("0002-longer-shelf")
    versioned_project.commit()
    versioned_project.edit(*STORE)
    code, output = versioned_project.review("--base", "HEAD")
    assert code == 1
    assert "permission.added recipient DeskService.StoreParcel [not recorded]" in output


def test_a_system_that_the_revision_does_not_have(versioned_project: Project) -> None:
    """Against a revision without the system the whole of it is new."""
    versioned_project.git("checkout", "-q", "--orphan", "other")
    versioned_project.git("rm", "-rq", "--cached", ".")
    versioned_project.git("commit", "-q", "--allow-empty", "-m", "Nothing.")
    code, output = versioned_project.review("--base", "HEAD")
    assert code == 0
    assert "system.added locker [0001-a-locker]" in output


def test_a_removed_system(versioned_project: Project) -> None:
    """A system that only the revision has is reported as removed."""
    (versioned_project.root / "spec/locker").rename(versioned_project.root / "elsewhere")
    (versioned_project.root / "spec/accepted/locker.json").unlink()
    assert "system.removed locker [not recorded]" in versioned_project.review("--base", "HEAD")[1]


def test_an_unknown_revision(versioned_project: Project) -> None:
    """An unknown revision is a usage error."""
    code, output = versioned_project.review("--base", "v9")
    assert code == 2
    assert "'v9' is no revision of the repository" in output


def test_without_git(accepted_project: Project) -> None:
    """Where there is no repository there is no revision."""
    assert accepted_project.review("--base", "HEAD")[0] == 2


def test_a_revision_that_cannot_be_read(versioned_project: Project) -> None:
    """An old spec that the current language cannot read is reported with its place in that revision."""
    versioned_project.edit("system", "version: 1", "colour: grey")
    versioned_project.commit()
    versioned_project.edit("system", "colour: grey", "version: 1")
    code, output = versioned_project.review("--base", "HEAD")
    assert code == 1
    assert (
        ":spec/locker/system.yaml:3:1: error E004: The key 'colour' is not part of the language here."
        in output
    )
