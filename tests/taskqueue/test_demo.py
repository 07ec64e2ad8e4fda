"""Tests of the demo: it shows every outcome, and says so when one is not the expected one."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from handlers.taskqueue.demo import demo
from runtime.client import connect
from tests.runtime.launch.up import run

DEPLOYMENT = "taskqueue.microservices"


def test_every_outcome_is_as_expected(tmp_path: Path) -> None:
    """The demo submits jobs of every kind, shows one line for each outcome and ends with exit code 0."""
    # A worker that a busy machine holds up for some seconds is not taken for lost.
    patient = ("--set", "WORKER_TIMEOUT_MS=60000")
    result = run("demo", DEPLOYMENT, "--logs", str(tmp_path), *patient)

    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == f"{DEPLOYMENT} is up: 6 processes"
    assert [line.split("  ")[1] for line in lines if line.startswith("ok ")] == [
        "3 short jobs",
        "5 long jobs",
        "a failing job",
        "too much output",
        "canceled while queued",
        "canceled while running",
        "same key again",
        "same key, other spec",
    ]


async def test_outcomes_that_are_not_seen_fail_the_demo() -> None:
    """Where nobody answers, the demo says why, every line says no, and the result is 1."""
    screen = StringIO()
    async with connect("taskqueue", "127.0.0.1:9") as client:
        assert await demo(client, Console(file=screen, width=80)) == 1

    lines = screen.getvalue().splitlines()
    assert lines[0].startswith("The demo broke off: TaskQueuePublicService: UNAVAILABLE")
    assert len([line for line in lines if line.startswith("no ")]) == 8
