"""Tests of the launcher against real processes on free ports."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from rich.console import Console

from generated.studio.clients import (
    DeskServiceClient,
    ForemanServiceClient,
    RackServiceClient,
)
from generated.studio.messages import (
    FetchFilmRequest,
    FindFilmRequest,
    HandInRequest,
    Order,
    RemoveFilmRequest,
    TakeFilmRequest,
)
from runtime.call.conditions import Condition, Failure
from runtime.launch import Launched, NodeDied, launched
from runtime.launch.status_view import StatusView
from tests.runtime.launch.up import PATIENCE, retry_call, run, up
from tests.support.eventually import eventually
from tests.support.specs.neutral import replace_systems
from tests.support.taskqueue.logs import wait_for_line

ROOMS = "studio.rooms"
NODES = ["desk", "ledger", "rack", "foreman", "printer", "archive"]


def together(test: Callable[..., Any]) -> Any:
    """Mark a test of the shared deployment: in its loop, and in one process if there are several."""
    return pytest.mark.xdist_group("launch")(pytest.mark.asyncio(loop_scope="module")(test))


@pytest.fixture(scope="module", autouse=True)
def neutral_systems() -> Iterator[None]:
    with replace_systems():
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def deployment() -> AsyncIterator[Launched]:
    """The rooms under TLS. A test that ends a node brings it back."""
    async with launched(ROOMS, ports="auto", settings={"STUDIO_LOG": "WARNING"}) as running:
        yield running


def has_ended(pid: int) -> bool:
    """Whether a process has ended; a zombie has ended, too."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@together
async def test_an_entity_goes_through_it(deployment: Launched) -> None:
    """Nodes find and prove themselves to each other, and an anonymous client reaches the ingress."""
    async with deployment.client() as client:
        api = client.of(DeskServiceClient)
        request = HandInRequest(order=Order(paper="any"))
        film_id = (await retry_call(lambda: api.hand_in(request, client.call()))).film_id
        status = FindFilmRequest(film_id=film_id)
        await eventually(
            lambda: retry_call(lambda: api.find_film(status, client.call())),
            wanted=lambda found: found.film.ended_at_ms,
        )


@together
async def test_it_has_the_endpoints_and_the_variables_of_a_client(deployment: Launched) -> None:
    """Endpoints are those of listening nodes; the environment of a client has no secret of a node."""
    assert list(deployment.endpoints) == [name for name in NODES if name != "printer"]
    assert deployment.env["CHARTER_DEPLOYMENT"] == ROOMS
    assert deployment.env["CHARTER_ADDRESS"] == deployment.endpoints["desk"]
    assert Path(deployment.env["CHARTER_CA_FILE"]).read_bytes().startswith(b"-----BEGIN CERTIFICATE")
    assert len(deployment.env) == 3


@together
async def test_a_client_can_prove_itself_as_a_principal(deployment: Launched) -> None:
    """A client of a principal has the permissions of the principal, and no others."""
    async with deployment.client("desk") as client:
        rack = client.of(RackServiceClient)
        none = RemoveFilmRequest(film_id="none")
        answer = await retry_call(lambda: rack.remove_film(none, client.call()))
        assert not answer.removed
        thief = TakeFilmRequest(printer_id="thief")
        with pytest.raises(Condition) as refused:
            await retry_call(lambda: rack.take_film(thief, client.call()))
        assert refused.value.code == "not_allowed"


@together
async def test_an_internal_node_refuses_callers_without_proof(deployment: Launched) -> None:
    """A node that serves only principals with certificates does not talk to someone without one."""
    async with deployment.client() as client:
        foreman = client.of(ForemanServiceClient)
        with pytest.raises(Failure):
            await foreman.fetch_film(FetchFilmRequest(printer_id="x"), client.call(2000))


@together
async def test_each_node_has_a_log_of_json_lines(deployment: Launched) -> None:
    """Every node writes to a file of its own, and says there that it is ready."""
    for process in deployment.processes.values():
        assert await wait_for_line(process, "service_ready")


@together
async def test_a_node_that_dies_is_named_with_its_last_lines(deployment: Launched) -> None:
    """An unexpected end is reported with name, code and log; the node can be started again."""
    process = deployment.processes["rack"]
    pid = process.pid
    assert pid is not None
    await wait_for_line(process, "service_ready")

    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        died = await deployment.wait_for_death()
    assert (died.name, died.code) == ("rack", -signal.SIGKILL)
    assert "service_ready" in died.last_lines[0]

    await deployment.restart("rack")
    assert process.pid not in (None, pid)


@together
async def test_an_end_that_was_asked_for_is_no_death(deployment: Launched) -> None:
    """Killing, stopping and restarting by the launcher itself is not reported as a death."""
    watching = asyncio.create_task(deployment.wait_for_death())
    await deployment.kill("printer")
    await deployment.restart("printer")
    await deployment.stop("archive")
    await deployment.restart("archive")

    assert not watching.done()
    watching.cancel()


@together
async def test_a_node_that_will_not_stop_is_killed(deployment: Launched) -> None:
    """A process that does not answer SIGTERM within its grace is ended all the same, and this is known."""
    process = deployment.processes["printer"]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)

    assert not await process.stop(0.2)

    assert not process.running
    await deployment.restart("printer")


def last_table(screen: str) -> str:
    """The last table of a terminal, from its title on, which is in italics."""
    return screen.rpartition(f"\x1b[3m{ROOMS}")[2]


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
    """Standard output is one line for programs; SIGTERM stops callers before callees, exit code 0."""
    with up(tmp_path, ROOMS, "--tls", "off", STUDIO_LOG="ERROR") as running:
        assert running.ready["deployment"] == ROOMS
        assert set(running.ready) == {"deployment", "endpoints", "env"}
        assert set(running.ready["env"]) == {"CHARTER_DEPLOYMENT", "CHARTER_ADDRESS"}
        assert "Taken from the environment: STUDIO_LOG" in running.errors
        pids = running.pids()
        assert list(pids) == NODES
        assert f"Logs are in {running.logs}" in running.errors

        running.process.send_signal(signal.SIGTERM)
        assert running.wait_for_end() == (0, "")

    order = [line.removesuffix(": stopped") for line in running.errors if line.endswith(": stopped")]
    assert sorted(order) == sorted(NODES)
    assert set(order[:2]) == {"desk", "printer"}
    assert order[2] == "foreman"
    assert all(has_ended(pid) for pid in pids.values())
    assert {path.name for path in running.logs.glob("*.jsonl")} == {f"{name}.jsonl" for name in NODES}


def test_no_node_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    """When the launcher gets SIGKILL, which it cannot catch, its nodes end too."""
    with up(tmp_path, ROOMS, "--tls", "off") as running:
        nodes = [psutil.Process(pid) for pid in running.pids().values()]
        running.process.kill()
        running.wait_for_end()

        psutil.wait_procs(nodes, timeout=PATIENCE)

    assert all(has_ended(node.pid) for node in nodes)


def test_a_used_port_is_reported_before_anything_starts() -> None:
    """The message has the port, its variable and node, the process that uses it, and a hint."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = run("up", ROOMS, "--set", f"RACK_PORT={port}", "--ports", "auto")

    assert result.returncode == 1
    assert f"Port {port} (RACK_PORT of rack) is taken by process {os.getpid()}: " in result.stderr
    assert "--ports auto" in result.stderr
    assert "pid " not in result.stderr
    assert result.stdout == ""


async def test_a_node_that_cannot_start_is_reported() -> None:
    """A node that ends while the others come up takes the whole deployment down, with its own words."""

    def steal(line: str) -> None:
        if line.startswith("desk: pid"):
            host, _, port = running.endpoints["archive"].partition(":")
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.bind((host, int(port)))
            thief.listen()

    running = launched(ROOMS, ports="auto", tls=False, tell=steal)
    with pytest.raises(NodeDied) as died, socket.socket() as thief:
        async with running:
            pass
    assert died.value.name == "archive"
    assert any("cannot listen" in line for line in died.value.last_lines)
