"""Tests of the launcher against real processes on free ports."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from rich.console import Console

from generated.taskqueue.clients import (
    CoordinatorInternalServiceClient,
    QueueInternalServiceClient,
    TaskQueuePublicServiceClient,
)
from generated.taskqueue.messages import (
    DequeueJobRequest,
    GetJobStatusRequest,
    JobSpec,
    RemoveJobIfPresentRequest,
    SubmitJobRequest,
    WorkerHeartbeatRequest,
)
from runtime.call.conditions import Condition, Failure
from runtime.launch import Launched, NodeDied, launched
from runtime.launch.status_view import StatusView
from tests.runtime.launch.up import PATIENCE, answered, run, up
from tests.support.eventually import eventually
from tests.support.taskqueue.logs import wait_for_line

MICROSERVICES = "taskqueue.microservices"
NODES = ["gateway", "job", "queue", "coordinator", "worker", "result"]


def together(test: Callable[..., Any]) -> Any:
    """Marks a test of the shared deployment: in its loop, and in one process if there are several."""
    return pytest.mark.xdist_group("launch")(pytest.mark.asyncio(loop_scope="module")(test))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def deployment() -> AsyncIterator[Launched]:
    """The microservices under TLS. A test that ends a node brings it back."""
    async with launched(MICROSERVICES, ports="auto", settings={"LOG_LEVEL": "WARNING"}) as running:
        yield running


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has ended too."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@together
async def test_a_job_goes_through_it(deployment: Launched) -> None:
    """Nodes find and prove themselves to each other, and an anonymous client reaches the ingress."""
    async with deployment.client() as client:
        api = client.of(TaskQueuePublicServiceClient)
        request = SubmitJobRequest(spec=JobSpec(job_type="any"))
        job_id = (await answered(lambda: api.submit_job(request, client.call()))).job_id
        status = GetJobStatusRequest(job_id=job_id)
        await eventually(
            lambda: answered(lambda: api.get_job_status(status, client.call())),
            wanted=lambda job: job.finished_at_ms,
        )


@together
async def test_it_tells_where_each_node_listens_and_what_a_client_needs(deployment: Launched) -> None:
    """Endpoints are those of listening nodes; the environment of a client has no secret of a node."""
    assert list(deployment.endpoints) == [name for name in NODES if name != "worker"]
    assert deployment.env["CHARTER_DEPLOYMENT"] == MICROSERVICES
    assert deployment.env["CHARTER_ADDRESS"] == deployment.endpoints["gateway"]
    assert Path(deployment.env["CHARTER_CA_FILE"]).read_bytes().startswith(b"-----BEGIN CERTIFICATE")
    assert len(deployment.env) == 3


@together
async def test_a_client_can_prove_itself_as_a_principal(deployment: Launched) -> None:
    """A client made for a principal may do what the principal may, and no more."""
    async with deployment.client("gateway") as client:
        queue = client.of(QueueInternalServiceClient)
        none = RemoveJobIfPresentRequest(job_id="none")
        answer = await answered(lambda: queue.remove_job_if_present(none, client.call()))
        assert not answer.removed
        thief = DequeueJobRequest(worker_id="thief")
        with pytest.raises(Condition) as refused:
            await answered(lambda: queue.dequeue_job(thief, client.call()))
        assert refused.value.code == "permission_denied"


@together
async def test_nobody_inside_answers_without_proof(deployment: Launched) -> None:
    """A node that serves only principals with certificates does not talk to someone without one."""
    async with deployment.client() as client:
        coordinator = client.of(CoordinatorInternalServiceClient)
        with pytest.raises(Failure):
            await coordinator.worker_heartbeat(WorkerHeartbeatRequest(worker_id="x"), client.call(2000))


@together
async def test_each_node_has_a_log_of_json_lines(deployment: Launched) -> None:
    """Every node writes to a file of its own, and says there that it is ready."""
    for process in deployment.processes.values():
        assert await wait_for_line(process, "service_ready")


@together
async def test_a_node_that_dies_is_named_with_its_last_lines(deployment: Launched) -> None:
    """An end that nobody asked for is told with name, code and log; the node can be started again."""
    process = deployment.processes["queue"]
    pid = process.pid
    assert pid is not None
    await wait_for_line(process, "service_ready")

    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        died = await deployment.wait_for_death()
    assert (died.name, died.code) == ("queue", -signal.SIGKILL)
    assert "service_ready" in died.last_lines[0]

    await deployment.restart("queue")
    assert process.pid not in (None, pid)


@together
async def test_an_end_that_was_asked_for_is_no_death(deployment: Launched) -> None:
    """Killing, stopping and restarting by the launcher itself is not reported as a death."""
    watching = asyncio.create_task(deployment.wait_for_death())
    await deployment.kill("worker")
    await deployment.restart("worker")
    await deployment.stop("result")
    await deployment.restart("result")

    assert not watching.done()
    watching.cancel()


@together
async def test_a_node_that_will_not_stop_is_killed(deployment: Launched) -> None:
    """A process that does not answer SIGTERM within its grace is ended all the same, and this is known."""
    process = deployment.processes["worker"]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)

    assert not await process.stop(0.2)

    assert not process.running
    await deployment.restart("worker")


def last_table(screen: str) -> str:
    """What a terminal shows in the end, from the title of the table on, which is in italics."""
    return screen.rpartition(f"\x1b[3m{MICROSERVICES}")[2]


@together
async def test_a_terminal_shows_a_table(deployment: Launched) -> None:
    """On a terminal every node is in a table with its process id, its health and its calls a second."""
    screen = StringIO()
    view = StatusView(Console(file=screen, force_terminal=True, width=100))
    watching = asyncio.create_task(view.watch(deployment))
    # The first rate is known when a counter has been read twice; a busy machine may look ill at first.
    shown = await eventually(
        lambda: last_table(screen.getvalue()),
        wanted=lambda table: " 0.0 " in table and "unhealthy" not in table,
    )
    watching.cancel()

    for name, process in deployment.processes.items():
        assert name in shown
        assert str(process.pid) in shown
    for heading in ("node", "pid", "health", "calls/s"):
        assert heading in shown


def test_it_prints_one_ready_line_and_stops_callers_first(tmp_path: Path) -> None:
    """Standard output is one line for programs; SIGTERM stops callers before what they call, exit code 0."""
    with up(tmp_path, MICROSERVICES, "--tls", "off", LOG_LEVEL="ERROR") as running:
        assert running.ready["deployment"] == MICROSERVICES
        assert set(running.ready) == {"deployment", "endpoints", "env"}
        assert set(running.ready["env"]) == {"CHARTER_DEPLOYMENT", "CHARTER_ADDRESS"}
        assert "Taken from the environment: LOG_LEVEL" in running.told
        pids = running.pids()
        assert list(pids) == NODES
        assert f"Logs are in {running.logs}" in running.told

        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == (0, "")

    order = [line.removesuffix(": stopped") for line in running.told if line.endswith(": stopped")]
    assert sorted(order) == sorted(NODES)
    assert set(order[:2]) == {"gateway", "worker"}
    assert order[2] == "coordinator"
    assert all(gone(pid) for pid in pids.values())
    assert {path.name for path in running.logs.glob("*.jsonl")} == {f"{name}.jsonl" for name in NODES}


def test_no_node_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    """When the launcher gets SIGKILL, which it cannot catch, its nodes end too."""
    with up(tmp_path, MICROSERVICES, "--tls", "off") as running:
        nodes = [psutil.Process(pid) for pid in running.pids().values()]
        running.process.kill()
        running.ended()

        psutil.wait_procs(nodes, timeout=PATIENCE)

    assert all(gone(node.pid) for node in nodes)


def test_a_taken_port_is_told_before_anything_starts() -> None:
    """The message has the port, its variable and node, who has it, and the way out."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = run("up", MICROSERVICES, "--set", f"QUEUE_PORT={port}", "--ports", "auto")

    assert result.returncode == 1
    assert f"Port {port} (QUEUE_PORT of queue) is taken by process {os.getpid()}: " in result.stderr
    assert "--ports auto" in result.stderr
    assert "pid " not in result.stderr
    assert result.stdout == ""


async def test_a_node_that_cannot_start_is_told() -> None:
    """A node that ends while the others come up takes the whole deployment down, with its own words."""

    def steal(line: str) -> None:
        if line.startswith("gateway: pid"):
            host, _, port = running.endpoints["result"].partition(":")
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.bind((host, int(port)))
            thief.listen()

    running = launched(MICROSERVICES, ports="auto", tls=False, tell=steal)
    with pytest.raises(NodeDied) as died, socket.socket() as thief:
        async with running:
            pass
    assert died.value.name == "result"
    assert any("cannot listen" in line for line in died.value.last_lines)
