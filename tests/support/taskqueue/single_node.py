"""One node by itself, with exactly the variables that a test gives it, and tokens."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import psutil

from generated.taskqueue.system import SYSTEM
from runtime.launch import NodeProcess
from runtime.launch.planning.plan import ProcessPlan, base_environment
from tests.support.eventually import PATIENCE_S, eventually
from tests.support.taskqueue.forked_deployments import ForkedNodeProcess
from tests.support.taskqueue.logs import lines

DEPLOYMENT = SYSTEM.deployments["microservices"]


PROOFS = {
    "CALLER_TOKEN": "a token",
    "ACCEPTED_TOKENS": ",".join(
        f"{name}={hashlib.sha256(name.encode()).hexdigest()}"
        for name, each in SYSTEM.principals.items()
        if "token" in each.proofs
    ),
}
"""The variables that a node needs to start without TLS. No test uses one of these tokens."""


def node(name: str, variables: Mapping[str, str], logs: Path) -> NodeProcess:
    """A node of the microservices that is not started yet."""
    table = DEPLOYMENT.nodes[name]
    planned = ProcessPlan(
        name=name,
        node=name,
        command=(sys.executable, "-m", "runtime.serve", f"taskqueue.microservices.{name}"),
        variables={**PROOFS, **variables},
        healthcheck=table.healthcheck,
        address=None,
        url=None,
        metrics_port=None,
    )
    return ForkedNodeProcess(planned, base_environment(SYSTEM), logs)


@asynccontextmanager
async def started_node(name: str, variables: Mapping[str, str], logs: Path) -> AsyncIterator[NodeProcess]:
    """A node that is started, and killed at the end if it has not ended by itself."""
    process = node(name, variables, logs)
    await process.start()
    try:
        yield process
    finally:
        await process.kill()


async def wait_for_exit(process: NodeProcess) -> int | None:
    """Wait until a process ends by itself; return its exit code."""
    async with asyncio.timeout(PATIENCE_S):
        return await process.wait()


def terminate(process: NodeProcess) -> None:
    """Ask a process once to end, and do not wait for it."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)


@contextmanager
def free_port() -> Iterator[int]:
    """A port on which no process listens and which no other test gets meanwhile."""
    with closing(socket.socket()) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("0.0.0.0", 0))
        yield holder.getsockname()[1]


@contextmanager
def occupied_port() -> Iterator[int]:
    """A port on which a process listens."""
    with closing(socket.create_server(("0.0.0.0", 0))) as listener:
        yield listener.getsockname()[1]


def is_open(port: int) -> bool:
    """Whether a port accepts connections."""
    try:
        with closing(socket.create_connection(("127.0.0.1", port), timeout=30)):
            return True
    except ConnectionRefusedError:
        return False


def list_listeners(process: NodeProcess) -> list[tuple[str, int]]:
    """The sockets on which a process listens."""
    assert process.pid is not None
    rows = psutil.Process(process.pid).net_connections("inet")
    return [(row.laddr.ip, row.laddr.port) for row in rows if row.status == psutil.CONN_LISTEN]


async def begin_to_stop(process: NodeProcess) -> int:
    """Ask a node once to stop, wait until it begins to; return the number of lines written before."""
    written = len(lines(process))
    terminate(process)

    async def list_new_events() -> list[str]:
        return [line["event"] for line in lines(process)[written:]]

    await eventually(
        list_new_events, wanted=lambda events: "service_stopping" in events, what="the beginning of the stop"
    )
    return written
