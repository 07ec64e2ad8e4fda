"""Tests of the proof in containers, with a fake `docker` that records its calls and answers from a file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from handlers.objectqueue import demo
from runtime.client import Client
from scripts import compose_proof

DOCKER = """#!{python} -SE
import json, os, sys
folder = "{folder}"
words = sys.argv[1:]
if words[0] == "compose":
    words = words[3:]
with open(folder + "/asked", "a") as asked:
    print(json.dumps([words, os.environ.get("AWS_SECRET_ACCESS_KEY")]), file=asked)
if words[:2] == ["ps", "--all"] and "json" in words:
    print(open(folder + "/containers").read())
elif words[0] == "inspect":
    # Whoever was told to kill something finds it started anew.
    print(open(folder + "/asked").read().count('["exec"'))
elif words[0] in ("run", "up"):
    said = json.load(open(folder + "/says")).get(words[0], [0, ""])
    print(said[1])
    sys.exit(said[0])
"""
DENIED = [1, '{"event": "start_failed"}']
PORT = 23456


class Docker:
    """The calls of the fake program, and its answers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.says(run=DENIED)
        services = {"s3": "healthy", "s3-buckets": "", "monitor": "healthy"}
        services |= {"worker-0": "healthy", "worker-1": "healthy"}
        port = {"PublishedPort": PORT, "TargetPort": 8333}
        rows = [
            {
                "Service": name,
                "Health": health,
                "State": "running" if health else "exited",
                "Publishers": [port] if name == "s3" else None,
            }
            for name, health in services.items()
        ]
        (folder / "containers").write_text("\n".join(map(json.dumps, rows)))
        program = folder / "docker"
        program.write_text(DOCKER.format(python=sys.executable, folder=folder))
        program.chmod(0o755)

    def says(self, **answers: list[Any]) -> None:
        """Exit code and output of some commands."""
        (self._folder / "says").write_text(json.dumps(answers))

    @property
    def asked(self) -> list[tuple[list[str], str]]:
        """Every command that changes something, and the password that it had."""
        lines = (self._folder / "asked").read_text().splitlines()
        found = [(words, key) for words, key in map(json.loads, lines)]
        return [(words, key) for words, key in found if words[0] not in ("ps", "inspect")]

    @property
    def commands(self) -> list[str]:
        return [" ".join(words).partition(" python -c")[0] for words, _ in self.asked]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return Docker(tmp_path)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The variables that the demo and whatever is interrupted were given; both come out well."""
    found: list[dict[str, str]] = []

    async def shown(client: Client, _console: Console) -> int:
        found.append(dict(client.variables))
        return 0

    async def interrupted(
        client: Client, _console: Console, interrupt: Callable[[], Awaitable[None]], *, least_runs: int
    ) -> int:
        found.append({**client.variables, "runs": str(least_runs)})
        await interrupt()
        return 0

    monkeypatch.setattr(demo, "demo", shown)
    monkeypatch.setattr(demo, "interrupted", interrupted)
    return found


def test_containers_without_an_ingress_are_proven_by_their_store(
    docker: Docker, seen: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each replica and the store are killed while a job runs, and all containers are removed at the end.

    The store is used by its published port with a key of its own; one that is there for something else stays
    where it is, and those who are to be denied have a wrong one.
    """
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    assert compose_proof.main(["objectqueue.compose"]) == 0
    assert docker.commands == [
        "up --detach --build --wait",
        "run --rm --no-deps -T monitor",
        "run --rm --no-deps -T worker-0",
        "stop worker-1",
        "kill worker-0",
        "start worker-1",
        "start worker-0",
        "kill s3",
        "start s3",
        "exec -T monitor",
        "exec -T worker-0",
        "down --volumes --timeout 10",
    ]
    assert [each.get("runs") for each in seen] == [None, "2", "1"]
    key = seen[0]["AWS_SECRET_ACCESS_KEY"]
    assert all(each["S3_ENDPOINT"] == f"http://127.0.0.1:{PORT}" for each in seen)
    assert key not in ("mine", "wrong")
    assert {used for words, used in docker.asked if words[0] != "run"} == {key}
    assert {used for words, used in docker.asked if words[0] == "run"} == {"wrong"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [([0, "{}"], "monitor was not denied: exit code 0"), ([1, "{}\n{}"], "monitor was not denied")],
)
@pytest.mark.usefixtures("seen")
def test_who_is_let_in_or_says_too_much_fails_the_proof(docker: Docker, answer: list[Any], why: str) -> None:
    docker.says(run=answer)
    with pytest.raises(SystemExit, match=why):
        compose_proof.main(["objectqueue.compose"])
    assert docker.commands[-1] == "down --volumes --timeout 10"


@pytest.mark.parametrize(
    ("name", "why"), [("demo", "The demo failed"), ("interrupted", "job that was started has ended")]
)
@pytest.mark.usefixtures("seen")
def test_a_failed_demo_fails_the_proof(
    docker: Docker, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    async def fails(*_given: object, **_named: object) -> int:
        return 1

    monkeypatch.setattr(demo, name, fails)
    with pytest.raises(SystemExit, match=why):
        compose_proof.main(["objectqueue.compose"])
    assert docker.commands[-1] == "down --volumes --timeout 10"


def test_containers_that_do_not_start_are_taken_away(docker: Docker) -> None:
    docker.says(up=[1, "no such image"])
    with pytest.raises(SystemExit, match="docker compose up failed:\nno such image"):
        compose_proof.main(["objectqueue.compose"])
    assert docker.commands == [
        "up --detach --build --wait",
        "logs --tail 20",
        "down --volumes --timeout 10",
    ]


def test_containers_with_an_ingress_are_proven_by_calls(
    docker: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generated tables decide which of the two a deployment is."""
    proven: list[bool] = []
    monkeypatch.setattr(
        compose_proof.IngressProof, "prove", lambda _self, *, with_failover: proven.append(with_failover)
    )
    assert compose_proof.main(["priority.compose", "--sentinel"]) == 0
    assert proven == [True]
    assert "compose.sentinel.yaml" in docker.commands[0]


@pytest.mark.parametrize("words", [[], ["objectqueue"], ["objectqueue.compose", "--faster"]])
def test_wrong_arguments_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert compose_proof.main(words) == 2
    assert "usage: python -m scripts.compose_proof <system>.<deployment>" in capsys.readouterr().err
