"""One node as a local process, with its log in a file."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from runtime.launch import die_with_parent
from runtime.launch.errors import NodeDied
from runtime.launch.planning.plan import LOOPBACK, ProcessPlan
from runtime.observe.log import SERVICE_READY

_TAIL_BYTES = 65536


class NodeProcess:
    """A process that can be restarted. Its log is appended to the same file."""

    def __init__(self, plan: ProcessPlan, environment: Mapping[str, str], logs: Path) -> None:
        self.plan = plan
        self.name = plan.name
        self.log = logs / f"{plan.name}.jsonl"
        self.errors = logs / f"{plan.name}.stderr"
        self._environment = {**environment, **plan.variables}
        self._process: asyncio.subprocess.Process | None = None
        self._stopping: asyncio.subprocess.Process | None = None
        self._log_start = 0
        self._ready = False

    async def start(self) -> None:
        """Start the process; returns before it is ready."""
        with self.log.open("ab") as output, self.errors.open("ab") as errors:
            self._log_start, self._ready = output.tell(), False
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *self.plan.command),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                # Not in the terminal's process group: Ctrl-C must reach the nodes through us, in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def has_logged_ready(self) -> bool:
        """Whether it has logged its ready line since it was started."""
        if not self._ready:
            with self.log.open("rb") as lines:
                lines.seek(self._log_start)
                self._ready = any(_event(line) == SERVICE_READY.name for line in lines)
        return self._ready

    async def wait_for_death(self) -> NodeDied:
        """Wait until it ends without having been stopped."""
        while True:
            process = self._process
            if process is not None:
                code = await process.wait()
                if process is not self._stopping:
                    return NodeDied(self.name, code, self.last_lines())
            while self._process is process:
                await asyncio.sleep(0.05)

    async def stop(self, grace: float) -> bool:
        """Send SIGTERM, and kill it after the grace; return whether it ended in time."""
        self._stopping = self._process
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await self.wait()
        except TimeoutError:
            await self.kill()
            return False
        return True

    async def kill(self) -> None:
        """Kill it, as a crash would, and wait."""
        self.kill_now()
        await self.wait()

    def kill_now(self) -> None:
        """Kill it without waiting."""
        self._stopping = self._process
        self._signal(signal.SIGKILL)

    async def wait(self) -> int | None:
        """Wait for its end; return the exit code."""
        return None if self._process is None else await self._process.wait()

    def describe(self) -> str:
        """Return one line for the user: pid and addresses."""
        plan, found = self.plan, [f"pid {self.pid}"]
        if plan.address is not None:
            found.append(f"listens on {plan.address}")
        if plan.url is not None:
            found.append(f"HTTP on {plan.url}")
        if plan.metrics_port is not None:
            found.append(f"metrics on {LOOPBACK}:{plan.metrics_port}")
        return f"{self.name}: {', '.join(found)}"

    def last_lines(self, count: int = 8) -> list[str]:
        """Return the last lines of its log and of its standard error."""
        return [line for path in (self.log, self.errors) for line in _tail(path, count)]

    def _signal(self, number: int) -> None:
        if (pid := self.pid) is not None:
            # Not by the process object, which would first poll the exit code and take it from asyncio.
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _event(line: bytes) -> object:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found.get("event") if isinstance(found, dict) else None


def _tail(path: Path, count: int) -> list[str]:
    if not path.exists():
        return []
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        return file.read().decode(errors="replace").splitlines()[-count:]
