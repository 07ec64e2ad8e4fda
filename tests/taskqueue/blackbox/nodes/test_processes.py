"""Nodes as processes: start, refusal of wrong settings, and end."""

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
from tests.support.taskqueue.logs import Line, lines, wait_for_line
from tests.support.taskqueue.single_node import (
    free_port,
    is_open,
    list_listeners,
    node,
    occupied_port,
    started_node,
    terminate,
    wait_for_exit,
)

ROOT = Path(__file__).parents[4]
UPSTREAMS = ("JOB_SERVICE_ADDR", "QUEUE_SERVICE_ADDR", "RESULT_SERVICE_ADDR")
NOWHERE = dict.fromkeys(UPSTREAMS, "127.0.0.1:1")
READINESS = ("worker_loop_started", "heartbeat_attempt", "service_ready")


async def run_to_exit(name: str, variables: Mapping[str, str], logs: Path) -> tuple[int | None, list[Line]]:
    """The exit code and the log of a node that ends by itself."""
    process = node(name, variables, logs)
    await process.start()
    return await wait_for_exit(process), lines(process)


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
async def test_a_node_with_wrong_settings_names_all_of_them_and_exits(
    tmp_path: Path, name: str, port: str, variables: dict[str, str], named: tuple[str, ...]
) -> None:
    """One line with every variable that is wrong, and exit code 2, before the port is bound."""
    with occupied_port() as used_port:
        settings = {**variables, **({port: str(used_port)} if port else {})}
        code, log = await run_to_exit(name, settings, tmp_path)
    assert (code, [line["event"] for line in log]) == (2, ["settings_invalid"])
    assert log[0]["level"] == "ERROR"
    assert all(variable in log[0]["message"] for variable in named)


async def test_a_node_whose_port_is_in_use_logs_it_and_exits(tmp_path: Path) -> None:
    """The line names the port, and the exit code differs from that of wrong settings."""
    with occupied_port() as used_port:
        code, log = await run_to_exit("queue", {"QUEUE_PORT": str(used_port)}, tmp_path)
    assert (code, len(log)) == (1, 1)
    assert str(used_port) in log[0]["message"]


@pytest.mark.req("TQ-178", "TQ-176", "TQ-175", "CH-80")
async def test_a_server_is_open_when_it_says_that_it_is_ready(tmp_path: Path) -> None:
    """Closed before its start, then bound to the configured port on every address, and only then ready."""
    with free_port() as port:
        assert not is_open(port)
        async with started_node("job", {"JOB_PORT": str(port)}, tmp_path) as process:
            ready = await wait_for_line(process, "service_ready")
            assert is_open(port)
            # gRPC listens on all addresses for 0.0.0.0, which include those of IPv6 where there are any.
            assert list_listeners(process) in ([("0.0.0.0", port)], [("::", port)])
            assert (ready["port"], lines(process)) == (port, [ready])
            terminate(process)
            assert await wait_for_exit(process) == 0
        assert not is_open(port)


@pytest.mark.req("TQ-177", "TQ-179", "CH-81", "CH-86", "TQ-016", "TQ-136")
@pytest.mark.parametrize("worker_id", ["", "crane"], ids=["host name", "given name"])
async def test_a_worker_is_ready_without_its_coordinator_and_listens_nowhere(
    tmp_path: Path, worker_id: str
) -> None:
    """Even if only errors are logged, loop, first heartbeat and readiness are in the log, in this order."""
    with free_port() as port:
        variables = {"COORDINATOR_ADDR": f"127.0.0.1:{port}", "LOG_LEVEL": "ERROR", "WORKER_ID": worker_id}
        async with started_node("worker", variables, tmp_path) as process:
            await wait_for_line(process, "service_ready")
            assert list_listeners(process) == []
            terminate(process)
            assert await wait_for_exit(process) == 0
    log = lines(process)
    assert tuple(line["event"] for line in log) == READINESS
    assert {line["worker_id"] for line in log if "worker_id" in line} == {worker_id or socket.gethostname()}


@pytest.mark.req("CH-86", "TQ-165")
async def test_only_errors_are_logged_and_yet_readiness_and_refusals(tmp_path: Path) -> None:
    """A server at LOG_LEVEL=ERROR logs that it is ready, and each call that it refused."""
    with free_port() as port:
        async with started_node(
            "queue", {"QUEUE_PORT": str(port), "LOG_LEVEL": "ERROR"}, tmp_path
        ) as process:
            await wait_for_line(process, "service_ready")
            await call_without_credentials(port)
            line = await wait_for_line(process, "rpc_error")
    assert (line["grpc_code"], line["method"]) == (
        "UNAUTHENTICATED",
        "QueueInternalService.RemoveJobIfPresent",
    )
    assert line["job_id"] == "nobody"


async def call_without_credentials(port: int) -> None:
    """Call the queue at a port without credentials."""
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
            completed = subprocess.run(
                ["sh", "-c", command.replace("$$", "$")],
                cwd=ROOT,
                env=variables,
                check=False,
                capture_output=True,
            )
            if completed.returncode == 0:
                break
        assert (kind, completed.returncode) == ("CMD-SHELL", 0), completed
