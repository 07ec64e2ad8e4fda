"""The environment of the taskqueue: defaults, required variables, and one message for all problems."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generated.taskqueue.settings import SETTINGS, VARIABLES, CoordinatorSettings, JobSettings, WorkerSettings
from generated.taskqueue.system import SYSTEM
from runtime.node.settings import SettingsError, read

UPSTREAMS = {
    "JOB_SERVICE_ADDR": "job:50052",
    "QUEUE_SERVICE_ADDR": "queue:50053",
    "RESULT_SERVICE_ADDR": "result:50055",
}
NEEDS: dict[str, dict[str, str]] = {
    "gateway": UPSTREAMS,
    "job": {},
    "queue": {},
    "coordinator": UPSTREAMS,
    "worker": {"COORDINATOR_ADDR": "coordinator:50054"},
    "result": {},
    "monolith": {"NODE_INDEX": "0", "NODE_ADDRS": "monolith-0:50051,monolith-1:50051"},
}
"""The required variables of each node."""
DESIGN = {name: "monolith" if name == "monolith" else "microservices" for name in NEEDS}
EVERYONE = {
    *("LOG_LEVEL", "PYTHONUNBUFFERED", "METRICS_PORT", "CALLER_TOKEN", "ACCEPTED_TOKENS"),
    *("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"),
}


def read_variables(node: str, **environ: str) -> dict[str, Any]:
    """Read the values of a node's variables as a node does when it starts."""
    table = SYSTEM.deployments[DESIGN[node]].nodes[node]
    variables = [SYSTEM.variables[name] for name in table.variables]
    return read(variables, SYSTEM.variable_rules, environ, table.defaults)


def read_own_variables(values: Mapping[str, Any]) -> dict[str, Any]:
    """Read the variables that a node has beyond those of every node."""
    return {name: value for name, value in values.items() if name not in EVERYONE}


def read_problems(node: str, **environ: str) -> tuple[str, ...]:
    """Read the problems that a node reports of its environment."""
    with pytest.raises(SettingsError) as error:
        read_variables(node, **environ)
    return error.value.problems


@pytest.mark.req("TQ-168")
@pytest.mark.parametrize("node", NEEDS)
def test_every_node_logs_from_info_on_without_a_buffer(node: str) -> None:
    """By default a node logs from INFO on, and its output is unbuffered."""
    values = read_variables(node, **NEEDS[node])
    assert (values["LOG_LEVEL"], values["PYTHONUNBUFFERED"]) == ("INFO", "1")
    assert read_variables(node, **NEEDS[node], LOG_LEVEL="ERROR")["LOG_LEVEL"] == "ERROR"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param("gateway", {"GATEWAY_PORT": 50051, **UPSTREAMS}, marks=pytest.mark.req("TQ-169")),
        pytest.param(
            "job",
            {"JOB_PORT": 50052, "MAX_DEDUP_KEYS": 10_000, "MAX_RETAINED_JOBS": 1_000_000},
            marks=pytest.mark.req("TQ-170", "CH-72"),
        ),
        pytest.param("queue", {"QUEUE_PORT": 50053}, marks=pytest.mark.req("TQ-171")),
        pytest.param(
            "coordinator",
            {
                "COORDINATOR_PORT": 50054,
                "HEARTBEAT_INTERVAL_MS": 1000,
                "WORKER_TIMEOUT_MS": 4000,
                "FETCH_RETRY_AFTER_MS": 200,
                **UPSTREAMS,
            },
            marks=pytest.mark.req("TQ-172", "CH-43"),
        ),
        pytest.param(
            "result",
            {"RESULT_PORT": 50055, "MAX_OUTPUT_BYTES": 262_144, "MAX_RETAINED_OUTPUT_BYTES": 2**30},
            marks=pytest.mark.req("TQ-173", "CH-72"),
        ),
        pytest.param(
            "worker",
            {
                "COORDINATOR_ADDR": "coordinator:50054",
                "HEARTBEAT_INTERVAL_MS": 1000,
                "MAX_OUTPUT_BYTES": 262_144,
                "WORKER_SLOTS": 6,
                "JOB_HANDLERS": None,
                "WORKER_ID": socket.gethostname(),
            },
            marks=pytest.mark.req("TQ-174", "TQ-136", "CH-44"),
        ),
        pytest.param(
            "monolith",
            {
                "NODE_PORT": 50051,
                "NODE_INDEX": 0,
                "NODE_ADDRS": ("monolith-0:50051", "monolith-1:50051"),
                "MAX_DEDUP_KEYS": 10_000,
                "MAX_RETAINED_JOBS": 1_000_000,
                "MAX_OUTPUT_BYTES": 262_144,
                "MAX_RETAINED_OUTPUT_BYTES": 2**30,
                "HEARTBEAT_INTERVAL_MS": 1000,
                "WORKER_TIMEOUT_MS": 4000,
                "FETCH_RETRY_AFTER_MS": 200,
                "WORKER_SLOTS": 1,
                "JOB_HANDLERS": None,
                "WORKER_ID": socket.gethostname(),
            },
            marks=pytest.mark.req("CH-88", "CH-44", "CH-72"),
        ),
    ],
)
def test_a_node_reads_these_variables(node: str, expected: dict[str, Any]) -> None:
    """Given only what it needs, a node has these values and no other variable."""
    assert read_own_variables(read_variables(node, **NEEDS[node])) == expected


@pytest.mark.req("TQ-169", "TQ-172", "TQ-174", "CH-79")
@pytest.mark.parametrize(("node", "name"), [(node, name) for node, needs in NEEDS.items() for name in needs])
@pytest.mark.parametrize("empty", [False, True])
def test_a_required_variable_has_no_default(node: str, name: str, empty: bool) -> None:
    """A node without one of its addresses does not start, and empty counts as unset."""
    environ = {key: value for key, value in NEEDS[node].items() if key != name}
    environ |= {name: ""} if empty else {}
    assert read_problems(node, **environ) == (
        f"{name}: is required and not set ({VARIABLES[name].meaning.rstrip('.')})",
    )


@pytest.mark.req("CH-79")
def test_all_problems_are_in_one_message() -> None:
    """Bad addresses, numbers, ports, levels and pairs are all in one message, each under its name."""
    found = read_problems(
        "coordinator",
        JOB_SERVICE_ADDR="job",
        QUEUE_SERVICE_ADDR="queue:99999",
        COORDINATOR_PORT="http",
        LOG_LEVEL="LOUD",
        HEARTBEAT_INTERVAL_MS="5000",
        WORKER_TIMEOUT_MS="5000",
        FETCH_RETRY_AFTER_MS="soon",
        METRICS_PORT="70000",
    )
    assert [problem.partition(":")[0] for problem in found] == [
        *("LOG_LEVEL", "COORDINATOR_PORT", "JOB_SERVICE_ADDR", "QUEUE_SERVICE_ADDR", "RESULT_SERVICE_ADDR"),
        *("FETCH_RETRY_AFTER_MS", "METRICS_PORT", "WORKER_TIMEOUT_MS"),
    ]


@pytest.mark.req("CH-79")
@pytest.mark.parametrize("port", ["0", "65536", "-1", "50051.0", "0x50", " 50051", "\u0665"])
def test_a_port_is_a_number_from_one(port: str) -> None:
    """Port 0 and everything that is no port is refused."""
    (problem,) = read_problems("job", JOB_PORT=port)
    assert problem.startswith("JOB_PORT: must be a port from 1 to 65535")


@pytest.mark.req("CH-23")
@pytest.mark.parametrize("count", ["0", "-1"])
def test_at_least_one_submit_key_is_remembered(count: str) -> None:
    """A bound below one fails the start, because nothing could be remembered under it."""
    (problem,) = read_problems("job", MAX_DEDUP_KEYS=count)
    assert problem.startswith("MAX_DEDUP_KEYS: must be at least 1")
    assert read_variables("job", MAX_DEDUP_KEYS="1")["MAX_DEDUP_KEYS"] == 1


@pytest.mark.req("CH-72")
def test_zero_keeps_everything() -> None:
    """Both bounds on what is kept may be zero, but not less."""
    assert read_variables("job", MAX_RETAINED_JOBS="0")["MAX_RETAINED_JOBS"] == 0
    assert read_variables("result", MAX_RETAINED_OUTPUT_BYTES="0")["MAX_RETAINED_OUTPUT_BYTES"] == 0
    assert len(read_problems("job", MAX_RETAINED_JOBS="-1")) == 1


@pytest.mark.req("CH-40")
@pytest.mark.parametrize(("timeout", "interval"), [("1000", "1000"), ("999", "1000"), ("4000", "4000")])
def test_a_worker_must_be_able_to_miss_a_beat(timeout: str, interval: str) -> None:
    """A timeout that is not longer than the interval fails the start."""
    pair = {"WORKER_TIMEOUT_MS": timeout, "HEARTBEAT_INTERVAL_MS": interval}
    (problem,) = read_problems("coordinator", **UPSTREAMS, **pair)
    assert problem.startswith(f"WORKER_TIMEOUT_MS: {timeout} must be greater than HEARTBEAT_INTERVAL_MS")
    read_variables("coordinator", **UPSTREAMS, **pair | {"WORKER_TIMEOUT_MS": str(int(interval) + 1)})


@pytest.mark.req("CH-40")
def test_a_worker_alone_knows_no_timeout() -> None:
    """The rule binds who reads both variables; a slow heartbeat alone is no fault of a worker."""
    assert (
        read_variables("worker", **NEEDS["worker"], HEARTBEAT_INTERVAL_MS="9000")["HEARTBEAT_INTERVAL_MS"]
        == 9000
    )


@pytest.mark.req("CH-43")
@pytest.mark.parametrize(("given", "used"), [("0", 50), ("10", 50), ("50", 50), ("200", 200), ("5000", 1000)])
def test_the_idle_hint_is_clamped(given: str, used: int) -> None:
    """Whatever is configured, the hint for a worker is 50 to 1000 ms."""
    assert CoordinatorSettings.load({"FETCH_RETRY_AFTER_MS": given}).fetch_retry_after_ms == used


@pytest.mark.req("CH-44")
@pytest.mark.parametrize(("node", "slots"), [("worker", 6), ("monolith", 1)])
def test_slots_have_a_default_in_each_design(node: str, slots: int) -> None:
    """One worker has six slots and a monolith one, unless the environment says otherwise."""
    assert read_variables(node, **NEEDS[node])["WORKER_SLOTS"] == slots
    assert read_variables(node, **NEEDS[node], WORKER_SLOTS="3")["WORKER_SLOTS"] == 3
    assert SYSTEM.deployments[DESIGN[node]].slots_total == 6


@pytest.mark.req("CH-88")
@pytest.mark.parametrize(
    ("index", "word"), [("2", "less than 2"), ("-1", "at least 0"), ("x", "whole number")]
)
def test_a_node_must_be_in_its_own_list(index: str, word: str) -> None:
    """An index outside the list of nodes fails the start."""
    (problem,) = read_problems("monolith", **NEEDS["monolith"] | {"NODE_INDEX": index})
    assert problem.startswith("NODE_INDEX: ") and word in problem


@pytest.mark.req("CH-88")
@pytest.mark.parametrize("nodes", ["a:1,b", "a:1,,b:2", "a:1,a:1", "a:0"])
def test_the_list_of_nodes_holds_different_addresses(nodes: str) -> None:
    """The order of the nodes is only as good as the list."""
    (problem,) = read_problems("monolith", NODE_INDEX="0", NODE_ADDRS=nodes)
    assert problem.startswith("NODE_ADDRS: ")


@pytest.mark.req("TQ-136", "CH-79")
@pytest.mark.parametrize(
    ("given", "used"), [({}, None), ({"WORKER_ID": ""}, None), ({"WORKER_ID": " w 1 "}, " w 1 ")]
)
def test_a_worker_is_named_by_its_host_by_default(given: dict[str, str], used: str | None) -> None:
    """An empty name counts as none, and another one is used as it is."""
    assert WorkerSettings.load(given).worker_id == (used or socket.gethostname())


def test_secrets_are_in_no_message() -> None:
    """Neither a token nor what was taken for its digest appears in a complaint."""
    secret = "hunter2-hunter2"
    found = " ".join(
        read_problems("job", CALLER_TOKEN=secret, ACCEPTED_TOKENS=f"gateway={secret}", JOB_PORT="x")
    )
    assert "ACCEPTED_TOKENS" in found
    assert secret not in found
    digest = hashlib.sha256(secret.encode()).hexdigest()
    assert read_variables("job", ACCEPTED_TOKENS=f"gateway={digest}")["ACCEPTED_TOKENS"] == {
        "gateway": bytes.fromhex(digest)
    }


def test_a_certificate_comes_with_its_key_and_authority(tmp_path: Path) -> None:
    """Part of an identity is as wrong as one that does not exist."""
    file = tmp_path / "node.crt"
    file.touch()
    (problem,) = read_problems("job", TLS_CERT_FILE=str(file))
    assert problem.startswith("TLS_CERT_FILE: needs TLS_KEY_FILE, TLS_CA_FILE too")
    assert len(read_problems("job", TLS_CERT_FILE=str(tmp_path / "none"))) == 1


def test_settings_are_frozen_and_complete() -> None:
    """Each component has settings of its own, which never change."""
    assert set(SETTINGS) == {"gateway", "job", "queue", "coordinator", "worker", "result"}
    settings = JobSettings.load({"MAX_DEDUP_KEYS": "7"})
    assert (settings.max_dedup_keys, settings.max_retained_jobs) == (7, 1_000_000)
    with pytest.raises(AttributeError):
        settings.max_dedup_keys = 8  # type: ignore[misc]
