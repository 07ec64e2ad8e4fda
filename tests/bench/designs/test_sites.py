"""Sites of a benchmark: containers, or a deployment that runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.designs.command import bench
from bench.designs.findings import DesignFindings
from bench.designs.sites import parse_container
from runtime.launch import Launched, launched


def run_bench(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(bench, words)
    return done.exit_code, done.output


@pytest.fixture(params=["microservices", "monolith"])
def running_deployment(request: pytest.FixtureRequest) -> Iterator[Launched]:
    """A deployment that was not launched by the benchmark."""
    with asyncio.Runner() as runner:
        up = launched(f"taskqueue.{request.param}", ports="auto", tls=True)
        runner.run(up.__aenter__())
        try:
            yield up
        finally:
            runner.run(up.__aexit__(None, None, None))


@pytest.mark.req("TQ-218", "TQ-219")
def test_load_is_put_on_a_deployment_that_runs_already(running_deployment: Launched, tmp_path: Path) -> None:
    """By its addresses and its authority alone; clients and jobs are measured, and the nodes are not."""
    options = "--step ladder --concurrency 2 --warm-up 0.1 --run 0.5 --repeats 1 --clients 1"
    target = (
        "--target",
        running_deployment.env["CHARTER_ADDRESS"],
        "--ca-file",
        running_deployment.env["CHARTER_CA_FILE"],
    )
    code, output = run_bench(running_deployment.name, *options.split(), *target, "--out", str(tmp_path))
    assert code == 0, output
    found = DesignFindings.load(tmp_path)
    assert found.manifest.place == "running"
    (design,) = found.designs.values()
    (step,) = design.steps
    assert step.primary.answered > 0
    assert step.primary.failed == {}
    assert step.jobs.submitted > 0
    assert step.nodes == ()
    assert (tmp_path / "loads.csv").exists()


MONOLITH = ",".join(f"127.0.0.1:{port}" for port in range(1, 7))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--concurrency", "abc"), "'abc' is not a list of numbers, such as 1,8,32."),
        (("--rate", "1,,2"), "'1,,2' is not a list of numbers, such as 1,8,32."),
        (("--mix", "1:x"), "'1:x' is not a mix, such as 1:2:1 (up to 5 whole numbers with colons"),
        (("--mix", "0:1"), "(a mix needs at least one submit"),
        (("--concurrency", "1.5"), "a closed loop has a whole number of users"),
        (("--set", "A"), "'A' is not NAME=VALUE."),
        (("--run", "0"), "0.0 is not in the range x>0."),
        (("taskqueue", "--target", "x:1"), "Name it: taskqueue.microservices or taskqueue.monolith."),
        (("taskqueue.monolith", "--target", "x:1"), "--target has 1 addresses, and taskqueue.monolith has 6"),
        (("taskqueue.monolith", "--target", MONOLITH, "--set", "A=1"), "--target goes without --containers"),
        (("taskqueue.monolith", "--target", MONOLITH, "--tls"), "TLS is off there"),
        (("--ca-file", __file__), "--ca-file goes with --target"),
        (
            ("taskqueue.monolith", "--target", MONOLITH, "--ca-file", __file__),
            "has no certificates in PEM form.",
        ),
        (("taskqueue.monolith", "--target", MONOLITH), "taskqueue.monolith cannot be called at --target"),
    ],
)
def test_a_wrong_option_is_answered_with_a_sentence(
    words: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    """It names the option and the rule; nothing of Python's own is shown, and nothing is written."""
    code, output = run_bench(*words, "--out", str(tmp_path / "none"))
    assert code != 0
    assert reason in " ".join(output.split())
    assert "Traceback" not in output
    assert "pydantic" not in output
    assert not (tmp_path / "none").exists()


def test_a_container_is_read_as_the_engine_describes_it() -> None:
    """Its service, the first of its processes, and the variables that it really has."""
    described = {
        "State": {"Pid": 4711, "Status": "running"},
        "Config": {
            "Env": ["WORKER_SLOTS=6", "PATH=/venv/bin:/bin", "NOTHING=", "UNSET"],
            "Labels": {"com.docker.compose.service": "worker"},
        },
    }
    found = parse_container(described)
    assert (found.service, found.pid) == ("worker", 4711)
    assert found.variables == {"WORKER_SLOTS": "6", "PATH": "/venv/bin:/bin", "NOTHING": ""}
