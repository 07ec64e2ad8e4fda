"""The deployment as `up` and `demo` bring it up, and as a user follows the pages."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from handlers.objectqueue.cli import qo
from tests.runtime.launch.up import run, up
from tests.support.orchestrator.stack import wait_until

DEPLOYMENT = "objectqueue.local"


def test_every_outcome_of_the_demo_is_as_expected(tmp_path: Path) -> None:
    """Tasks of every kind, on a store that comes along."""
    result = run("demo", DEPLOYMENT, "--logs", str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.req("OQ-001", "OQ-002", "OQ-179", "OQ-262")
def test_the_printed_lines_are_complete(tmp_path: Path) -> None:
    """The variables are those of `qo`, the page is at its address, and tasks survive a restart."""
    data, task = tmp_path / "data", ""
    for workers, expected in (("0", "pending"), ("2", "1")):
        folder = tmp_path / workers
        folder.mkdir()
        with up(folder, DEPLOYMENT, "--workers", workers, CHARTER_DATA=str(data)) as running:
            shell = CliRunner(env=running.ready["env"])
            with urllib.request.urlopen(running.ready["endpoints"]["page"]) as page:
                assert page.status == 200
            if not task:
                task = shell.invoke(qo, ["submit", "--type", "echo", "--input", "1"]).stdout.strip()
            waited = shell.invoke(qo, ["wait", task, "--seconds", "0.1" if workers == "0" else "90"])
            assert waited.stdout.strip() == expected
            output = wait_until(
                lambda shell=shell: json.loads(shell.invoke(qo, ["workers", "--json"]).stdout)["workers"],  # type: ignore[misc]
                "all of them are shown",
                lambda seen, workers=workers: len(seen) == int(workers),  # type: ignore[misc]
            )
            assert len({each["worker"]["worker_id"] for each in output}) == int(workers)
