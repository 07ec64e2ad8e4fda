"""A queue as a new user starts it: one command, embedded servers, and a line with its endpoints."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from generated.priority.system import SYSTEM
from runtime.cli import charter
from tests.runtime.launch.up import up
from tests.support.plain_http import NO_TLS


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user may enter, since PostgreSQL does not run as root."""
    with tempfile.TemporaryDirectory(prefix="charter-test-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def run_cli(method: str, env: dict[str, str]) -> dict[str, Any]:
    """The answer of the command line with nothing but the variables of the ready line."""
    result = CliRunner().invoke(charter, ["priority", method, "--json", "--deadline-ms", "60000"], env=env)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("name", ["local", "postgres"])
def test_one_command_starts_it_and_tasks_survive_a_restart(folder: Path, name: str) -> None:
    """The line names the API and a token for each role; without workers a task waits, also over a restart."""
    tasks: list[str] = []
    servers = SYSTEM.deployments[name].servers
    for _ in range(2):
        with up(folder, f"priority.{name}", "--workers", "0", CHARTER_DATA=str(folder / "data")) as running:
            assert list(running.pids()) == [*servers, "api"]
            url, env = running.ready["endpoints"]["api"], running.ready["env"]
            headers = {
                role: {"authorization": f"Bearer {env[f'{role}_TOKEN']}"} for role in ("CLIENT", "ADMIN")
            }
            assert env["WORKER_TOKEN"]
            with httpx.Client(base_url=url, headers=headers["CLIENT"], timeout=60, verify=NO_TLS) as http:
                answer = http.post("/api/v1/tasks", json={"task_type": "echo", "idempotency_key": "same"})
                assert answer.status_code == (200 if tasks else 201)
                tasks.append(answer.json()["task_id"])
                assert http.get(f"/api/v1/tasks/{tasks[0]}").json()["status"] == "queued"
                assert http.get("/api/v1/admin/workers").status_code == 403
                assert http.get("/api/v1/admin/workers", headers=headers["ADMIN"]).json()["workers"] == []
            assert [row["task_id"] for row in run_cli("list-tasks", env)["tasks"]] == [tasks[0]]
            assert run_cli("list-dead-letters", env)["tasks"] == []
    assert tasks[0] == tasks[1]
