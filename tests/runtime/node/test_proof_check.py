"""A node that no call can reach, or that can make none, does not start; it says which variable is missing."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from runtime.launch.planning.plan import base_environment
from runtime.node.node import Node
from runtime.node.settings import SettingsError
from runtime.node.systems import load_system
from runtime.world import RealWorld

TLS = "TLS_CERT_FILE, TLS_KEY_FILE and TLS_CA_FILE"
UPSTREAMS = ("JOB_SERVICE_ADDR", "QUEUE_SERVICE_ADDR", "RESULT_SERVICE_ADDR", "COORDINATOR_ADDR")
REQUIRED = {
    **dict.fromkeys((*UPSTREAMS, "MANAGER_ADDR", "QUEUE_ADDR"), "127.0.0.1:9"),
    "DATABASE_URL": "postgresql://user:word@127.0.0.1:9/none",
    "REDIS_URL": "redis://127.0.0.1:9/0",
    "STORE_URL": "http://127.0.0.1:9",
    "NODE_INDEX": "0",
    "NODE_ADDRS": "127.0.0.1:9",
}
TOKEN = hashlib.sha256(b"a token").hexdigest()


def make_node(place: str, **settings: str) -> Node:
    """A node with the required variables and these; nothing is opened."""
    system, deployment, node = place.split(".")
    return Node(load_system(system), deployment, node, {**REQUIRED, **settings}, RealWorld(), io.StringIO())


def problems(place: str, **settings: str) -> tuple[str, ...]:
    """What keeps a node from starting."""
    with pytest.raises(SettingsError) as refused:
        make_node(place, **settings)
    return refused.value.problems


@pytest.mark.parametrize(
    ("place", "callers"),
    [
        ("taskqueue.microservices.job", "gateway, coordinator"),
        ("taskqueue.microservices.queue", "gateway, coordinator"),
        ("taskqueue.microservices.result", "gateway, coordinator"),
        ("orchestrator.compose.api", "client, worker, operator"),
        ("priority.compose.api", "client, worker, admin"),
        ("priority.local.api", "client, worker, admin"),
    ],
)
def test_a_node_that_recognises_no_caller_does_not_start(place: str, callers: str) -> None:
    """It names the missing tokens, and TLS as the alternative."""
    node = place.rpartition(".")[2]
    assert problems(place) == (
        f"ACCEPTED_TOKENS: is not set, and TLS is off, so {node} recognises no caller ({callers}) "
        f"and would refuse them all; set ACCEPTED_TOKENS, or {TLS}",
    )


@pytest.mark.parametrize(
    ("place", "called"),
    [
        ("taskqueue.microservices.gateway", "job, queue, result"),
        ("taskqueue.microservices.worker", "coordinator"),
        ("priority.compose.worker", "api"),
    ],
)
def test_a_node_that_cannot_prove_itself_does_not_start(place: str, called: str) -> None:
    """It names the token that it lacks, and whom it would show it to."""
    node = place.rpartition(".")[2]
    assert problems(place) == (
        f"CALLER_TOKEN: is not set, and TLS is off, so {node} cannot prove itself to {called}, where its "
        f"calls would be refused; set CALLER_TOKEN, or {TLS}",
    )


def test_all_that_is_missing_is_said_at_once() -> None:
    """A node that serves and calls lacks two variables."""
    found = problems("taskqueue.microservices.coordinator")
    assert [each.partition(":")[0] for each in found] == ["ACCEPTED_TOKENS", "CALLER_TOKEN"]


def test_tokens_of_others_do_not_help() -> None:
    """A token of a principal that may not call here is as good as none."""
    (found,) = problems("taskqueue.microservices.job", ACCEPTED_TOKENS=f"worker={TOKEN}")
    assert found.startswith("ACCEPTED_TOKENS: knows none of the principals that may call, and TLS is off")


@pytest.mark.parametrize(
    ("place", "settings"),
    [
        ("taskqueue.microservices.job", {"ACCEPTED_TOKENS": f"gateway={TOKEN}"}),
        ("taskqueue.microservices.gateway", {"CALLER_TOKEN": "a token"}),
        ("orchestrator.compose.api", {"ACCEPTED_TOKENS": f"client={TOKEN}"}),
        ("taskqueue.monolith.monolith", {}),
        ("orchestrator.compose.worker", {}),
        ("orchestrator.local.api", {}),
        ("priority.compose.scheduler", {}),
        ("queuey.local.queue", {}),
        ("queuey.local.store", {}),
        ("queuey.local.runner", {}),
    ],
)
def test_a_node_that_can_be_called_and_can_call_starts(place: str, settings: Mapping[str, str]) -> None:
    """One token is enough, and none is needed where the spec lets callers in without, or where none call."""
    make_node(place, **settings)


def test_the_process_ends_before_it_is_ready() -> None:
    """`runtime.serve` logs one line that names the variable, and ends with exit code 2."""
    done = subprocess.run(
        [sys.executable, "-m", "runtime.serve", "taskqueue.microservices.job"],
        cwd=Path(__file__).parents[3],
        env=base_environment(load_system("taskqueue")),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stdout.splitlines()
    assert '"event":"settings_invalid","message":"A setting is wrong: ACCEPTED_TOKENS: is not set' in line
