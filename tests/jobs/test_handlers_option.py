"""A user's own job functions: every worker loads them by name, and reports errors before it starts."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from handlers.jobs import built_in, find
from handlers.jobs.registry import ANY, all_registered, find_or_any
from tests.runtime.launch.up import Up, run, up
from tests.support.eventually import wait_until
from tests.support.plain_http import NO_TLS

ROOT = Path(__file__).parents[2]
OWN = "tests.support.jobs.user_functions"
Ask = Callable[[Up, str], Any]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the user of PostgreSQL can traverse, if we are root."""
    with tempfile.TemporaryDirectory(prefix="charter-test-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made)


def wait_for_end(look: Callable[[], dict[str, Any]], *, waits: tuple[str, ...]) -> dict[str, Any]:
    """Wait until the status is terminal; return the answer."""
    return wait_until(look, wanted=lambda found: found["status"] not in waits, patience=120)


def orchestrator(running: Up, job_type: str) -> Any:
    body = {"jobType": job_type, "payload": {"name": "you"}, "idempotencyKey": job_type}
    with httpx.Client(base_url=running.ready["endpoints"]["api"], timeout=60, verify=NO_TLS) as http:
        job = http.post("/jobs", json=body).json()["jobId"]
        found = wait_for_end(lambda: http.get(f"/jobs/{job}").json(), waits=("PENDING", "RUNNING"))
    return found["status"]


def priority(running: Up, job_type: str) -> Any:
    headers = {"authorization": f"Bearer {running.ready['env']['CLIENT_TOKEN']}"}
    body = {"task_type": job_type, "parameters": {"name": "you"}, "max_retries": 0}
    url = running.ready["endpoints"]["api"]
    with httpx.Client(base_url=url, headers=headers, timeout=60, verify=NO_TLS) as http:
        task = http.post("/api/v1/tasks", json=body).json()["task_id"]
        found = wait_for_end(lambda: http.get(f"/api/v1/tasks/{task}").json(), waits=("queued", "executing"))
    return found["status"], found.get("result")


def taskqueue(running: Up, job_type: str) -> Any:
    command = (sys.executable, "-m", "runtime.cli", "taskqueue", "submit-job", "--job-type", job_type)
    found = subprocess.run(
        (*command, "--labels", "name=you", "--deadline-ms", "60000", "--watch", "--json"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **running.ready["env"]},
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return json.loads(found.stdout)


@pytest.mark.parametrize(
    ("deployment", "ask"),
    [
        ("orchestrator.local", orchestrator),
        ("priority.local", priority),
        ("taskqueue.microservices", taskqueue),
    ],
    ids=["orchestrator", "priority", "taskqueue"],
)
def test_a_deployment_runs_functions_of_a_module(folder: Path, deployment: str, ask: Ask) -> None:
    """Plain ones, and those that have the type of one that comes along, by one word of the command."""
    data = str(folder / "data")
    with up(folder, deployment, "--handlers", OWN, "--tls", "off", CHARTER_DATA=data) as running:
        answers = {job_type: ask(running, job_type) for job_type in ("greet", "echo")}
    if deployment == "orchestrator.local":
        assert answers == {"greet": "COMPLETED", "echo": "COMPLETED"}
    elif deployment == "priority.local":
        assert answers["echo"] == ("completed", "my own")
        assert answers["greet"][1]["hello"] == "you"
        assert answers["greet"][1]["pid"] not in running.pids().values()
    else:
        assert "DONE" in json.dumps(answers["greet"]) and "DONE" in json.dumps(answers["echo"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("orchestrator.local", "--handlers", "no.such_module"), "There is no module no.such_module"),
        (("priority.local", "--handlers", f"{OWN},missing"), "There is no module missing"),
        (("taskqueue.monolith", "--set", "JOB_HANDLERS=missing"), "There is no module missing"),
        (("queuey.local", "--handlers", OWN), "has no worker that loads functions"),
    ],
)
def test_a_missing_module_is_reported_before_anything_starts(
    arguments: tuple[str, ...], message: str
) -> None:
    found = run("up", *arguments)
    assert (found.returncode, found.stdout) == (2, "")
    assert message in found.stderr and ": pid " not in found.stderr


@pytest.mark.parametrize("system", ["orchestrator", "priority"])
def test_a_module_without_functions_is_a_wrong_setting(system: str) -> None:
    """As one that cannot be imported is; the node ends before it reaches for any server."""
    found = subprocess.run(
        (sys.executable, "-m", "runtime.serve", f"{system}.local.worker", "--handlers=json"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={
            **os.environ,
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
            "REDIS_URL": "redis://127.0.0.1:1",
            "MANAGER_ADDR": "127.0.0.1:1",
            "CALLER_TOKEN": "worker",
        },
    )
    assert found.returncode == 2, found.stdout
    assert "JOB_HANDLERS: json has no job function" in found.stdout


def test_the_built_in_types_are_listed() -> None:
    """The page has each with what its function says of itself, and no other."""
    text = (ROOT / "docs/how-to/job-functions.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", text, re.MULTILINE))
    built = {name: each for name, each in all_registered().items() if each.is_built_in}
    known = {**{name: each.function for name, each in built.items()}, ANY: find_or_any(ANY).function}
    assert listed == {name: inspect.getdoc(function) for name, function in known.items()}
    assert find("echo") is not None and known["echo"] is built_in.echo
    other = (ROOT / "docs/how-to/use-orchestrator.md").read_text(encoding="utf-8")
    named = ", ".join(f"`{name}`" for name in ("echo", "sleep", "fail", "fatal"))
    assert f"({named})" in " ".join(other.split()) and set(built) == {"echo", "sleep", "fail", "fatal"}
