"""Nodes as processes: how they start, what they say when they cannot, and how they end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import grpc
import grpc.aio
import pytest

from generated.taskqueue.messages import RemoveJobIfPresentRequest
from generated.taskqueue_internal_pb2_grpc import QueueInternalServiceStub
from runtime.launch import Launched
from tests.support import quick_yaml
from tests.support.taskqueue.logs import Line, lines, told
from tests.support.taskqueue.single_node import (
    exit_code,
    free_port,
    is_open,
    listening,
    node,
    running,
    taken_port,
    terminate,
)

ROOT = Path(__file__).parents[4]
UPSTREAMS = ("JOB_SERVICE_ADDR", "QUEUE_SERVICE_ADDR", "RESULT_SERVICE_ADDR")
NOWHERE = dict.fromkeys(UPSTREAMS, "127.0.0.1:1")
READINESS = ("worker_loop_started", "heartbeat_attempt", "service_ready")


async def last_words(name: str, variables: Mapping[str, str], logs: Path) -> tuple[int | None, list[Line]]:
    """The exit code and the log of a node that ends by itself."""
    process = node(name, variables, logs)
    await process.start()
    return await exit_code(process), lines(process)


@pytest.mark.parametrize(
    ("name", "port", "variables", "named"),
    [
        pytest.param("gateway", "GATEWAY_PORT", {}, UPSTREAMS, marks=pytest.mark.req("TQ-169")),
        pytest.param(
            "gateway",
            "",
            {
                "GATEWAY_PORT": "70000",
                "JOB_SERVICE_ADDR": "",
                "QUEUE_SERVICE_ADDR": "queue",
                "RESULT_SERVICE_ADDR": ":1",
            },
            ("GATEWAY_PORT", *UPSTREAMS),
            marks=pytest.mark.req("TQ-169"),
        ),
        pytest.param("coordinator", "COORDINATOR_PORT", {}, UPSTREAMS, marks=pytest.mark.req("TQ-172")),
        pytest.param(
            "coordinator",
            "COORDINATOR_PORT",
            {**NOWHERE, "HEARTBEAT_INTERVAL_MS": "500", "WORKER_TIMEOUT_MS": "500"},
            ("WORKER_TIMEOUT_MS", "HEARTBEAT_INTERVAL_MS"),
            marks=pytest.mark.req("CH-40"),
        ),
        pytest.param(
            "worker",
            "",
            {"WORKER_SLOTS": "none"},
            ("COORDINATOR_ADDR", "WORKER_SLOTS"),
            marks=pytest.mark.req("TQ-174"),
        ),
        pytest.param(
            "job",
            "JOB_PORT",
            {"MAX_DEDUP_KEYS": "0", "LOG_LEVEL": "LOUD"},
            ("MAX_DEDUP_KEYS", "LOG_LEVEL"),
            marks=pytest.mark.req("CH-23"),
        ),
        pytest.param(
            "result", "", {"RESULT_PORT": "x", "MAX_OUTPUT_BYTES": "-1"}, ("RESULT_PORT", "MAX_OUTPUT_BYTES")
        ),
        pytest.param("queue", "QUEUE_PORT", {"TLS_CERT_FILE": "/dev/null/x"}, ("TLS_CERT_FILE",)),
    ],
)
@pytest.mark.req("CH-79")
async def test_a_node_with_wrong_settings_names_all_of_them_and_ends(
    tmp_path: Path, name: str, port: str, variables: dict[str, str], named: tuple[str, ...]
) -> None:
    """One line with every variable that is wrong, and exit code 2, before the port is touched."""
    with taken_port() as taken:
        given = {**variables, **({port: str(taken)} if port else {})}
        code, said = await last_words(name, given, tmp_path)
    assert (code, [line["event"] for line in said]) == (2, ["settings_invalid"])
    assert said[0]["level"] == "ERROR"
    assert all(variable in said[0]["message"] for variable in named)


async def test_a_node_whose_port_is_taken_says_so_and_ends(tmp_path: Path) -> None:
    """The line names the port, and the exit code differs from that of wrong settings."""
    with taken_port() as taken:
        code, said = await last_words("queue", {"QUEUE_PORT": str(taken)}, tmp_path)
    assert (code, len(said)) == (1, 1)
    assert str(taken) in said[0]["message"]


@pytest.mark.req("TQ-178", "TQ-176", "TQ-175", "CH-80")
async def test_a_server_is_open_when_it_says_that_it_is_ready(tmp_path: Path) -> None:
    """Closed before its start, then bound to the given port on every address, and only then ready."""
    with free_port() as port:
        assert not is_open(port)
        async with running("job", {"JOB_PORT": str(port)}, tmp_path) as process:
            ready = await told(process, "service_ready")
            assert is_open(port)
            # gRPC takes 0.0.0.0 for all addresses, and those of IPv6 are among them where there are any.
            assert listening(process) in ([("0.0.0.0", port)], [("::", port)])
            assert (ready["port"], lines(process)) == (port, [ready])
            terminate(process)
            assert await exit_code(process) == 0
        assert not is_open(port)


@pytest.mark.req("TQ-177", "TQ-179", "CH-81", "CH-86", "TQ-016", "TQ-136")
@pytest.mark.parametrize("given", ["", "crane"], ids=["host name", "given name"])
async def test_a_worker_is_ready_without_its_coordinator_and_listens_nowhere(
    tmp_path: Path, given: str
) -> None:
    """Even if only errors are logged it tells of loop, first heartbeat and readiness, in this order."""
    with free_port() as nobody:
        variables = {"COORDINATOR_ADDR": f"127.0.0.1:{nobody}", "LOG_LEVEL": "ERROR", "WORKER_ID": given}
        async with running("worker", variables, tmp_path) as process:
            await told(process, "service_ready")
            assert listening(process) == []
            terminate(process)
            assert await exit_code(process) == 0
    said = lines(process)
    assert tuple(line["event"] for line in said) == READINESS
    assert {line["worker_id"] for line in said if "worker_id" in line} == {given or socket.gethostname()}


@pytest.mark.req("CH-86", "TQ-165")
async def test_only_errors_are_logged_and_yet_readiness_and_refusals(tmp_path: Path) -> None:
    """A server at LOG_LEVEL=ERROR tells that it is ready, and of each call that it refused."""
    with free_port() as port:
        async with running("queue", {"QUEUE_PORT": str(port), "LOG_LEVEL": "ERROR"}, tmp_path) as process:
            await told(process, "service_ready")
            await refused_call(port)
            line = await told(process, "rpc_error")
    assert (line["grpc_code"], line["method"]) == (
        "UNAUTHENTICATED",
        "QueueInternalService.RemoveJobIfPresent",
    )
    assert line["job_id"] == "nobody"


async def refused_call(port: int) -> None:
    """A call without proof to the queue at a port."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await QueueInternalServiceStub(channel).RemoveJobIfPresent(
                RemoveJobIfPresentRequest(job_id="nobody")
            )


@pytest.mark.req("TQ-184", "TQ-180", "CH-83")
def test_the_healthcheck_of_each_container_passes(deployment: Launched) -> None:
    """The command of the compose file, run by a shell with the variables of the node, exits with 0."""
    compose = ROOT / f"generated/taskqueue/deploy/{deployment.deployment.name}/compose.yaml"
    services = quick_yaml.read(compose.read_text(encoding="utf-8"))["services"]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for name, process in deployment.processes.items():
        kind, command = services[name]["healthcheck"]["test"]
        variables = {**process.plan.variables, "PATH": path}
        # As a container is tried several times, because a machine may be busy for a second.
        for _ in range(services[name]["healthcheck"]["retries"]):
            done = subprocess.run(
                ["sh", "-c", command.replace("$$", "$")],
                cwd=ROOT,
                env=variables,
                check=False,
                capture_output=True,
            )
            if done.returncode == 0:
                break
        assert (kind, done.returncode) == ("CMD-SHELL", 0), done
