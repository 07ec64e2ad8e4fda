"""Deployments whose nodes are forked from a process with their modules loaded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import cast

import pytest

from runtime.launch import Launched, NodeProcess, launched
from runtime.transport.grpc.carrier import VARIABLE
from tests.support import forked_nodes
from tests.support.forked_nodes import ForkedProcess


class AwaitedProcess:
    """A forked process, with the part of asyncio's process that a node uses."""

    def __init__(self, process: ForkedProcess) -> None:
        self._process = process
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def wake_up() -> None:
            # The loop may be closed where nothing awaited the end of the process any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set)

        self._process.call_at_end(wake_up)
        await ended.wait()
        return self._process.wait()


class ForkedNodeProcess(NodeProcess):
    """A node that is forked and not started with an interpreter of its own."""

    async def start(self) -> None:
        interpreter, option, module, *arguments = self.plan.command
        assert (option, module) == ("-m", "runtime.serve"), interpreter
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self._ready = False
        system = arguments[0].partition(".")[0]
        process = await asyncio.to_thread(
            forked_nodes.start, system, module, arguments, self._environment, self.log, self.errors
        )
        assert isinstance(process, ForkedProcess)
        self._process = cast("asyncio.subprocess.Process", AwaitedProcess(process))


@asynccontextmanager
async def launched_by_fork(
    name: str, *, tls: bool = False, settings: Mapping[str, str] | None = None, carrier: str = "grpcio"
) -> AsyncIterator[Launched]:
    """Bring a deployment up on free ports, healthy, whose nodes call each other by a carrier."""
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("runtime.launch.deployment.NodeProcess", ForkedNodeProcess)
            patch.setenv(VARIABLE, carrier)
            running = await stack.enter_async_context(
                launched(name, ports="auto", tls=tls, settings=settings)
            )
        yield running
