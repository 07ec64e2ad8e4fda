"""Fixtures of the tests of reviews."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.codegen.review_project import Project, make_project


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    """A project with one system that was never accepted."""
    return make_project(tmp_path, capsys)


@pytest.fixture
def accepted_project(project: Project) -> Project:
    """A project whose system is accepted as it is."""
    project.accept_first()
    return project
