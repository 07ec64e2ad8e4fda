"""Options for the site of a benchmark, and containers as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.designs.command import bench
from bench.designs.sites import parse_container


def run_bench(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(bench, words)
    return done.exit_code, done.output


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
