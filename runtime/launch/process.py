"""One node as a local process: started, watched and ended, with its log in a file."""

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
from runtime.launch.planning.plan import LOOPBACK, Planned
from runtime.observe.log import SERVICE_READY

_TAIL_BYTES = 65536


class NodeProcess:
    """A process that can be started again after it ended. Its log goes on in the same file."""

    def __init__(self, planned: Planned, environment: Mapping[str, str], logs: Path) -> None:
        self.planned = planned
        self.name = planned.name
        self.log = logs / f"{planned.name}.jsonl"
        self.errors = logs / f"{planned.name}.stderr"
        self._environment = {**environment, **planned.variables}
        self._process: asyncio.subprocess.Process | None = None
        self._asked_to_end: asyncio.subprocess.Process | None = None
        self._log_start = 0
        self._ready = False

    async def start(self) -> None:
        """Starts it; returns before it is ready."""
        with self.log.open("ab") as output, self.errors.open("ab") as errors:
            self._log_start, self._ready = output.tell(), False
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())),
                *self.planned.command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                # Away from the terminal's group: Ctrl-C must reach the nodes through us, in an order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def said_ready(self) -> bool:
        """Whether it has written its ready line since it was started."""
        if not self._ready:
            with self.log.open("rb") as lines:
                lines.seek(self._log_start)
                self._ready = any(_event(line) == SERVICE_READY.name for line in lines)
        return self._ready

    async def died(self) -> NodeDied:
        """Returns when it ends without having been asked to."""
        while True:
            process = self._process
            if process is not None:
                code = await process.wait()
                if process is not self._asked_to_end:
                    return NodeDied(self.name, code, self.last_lines())
            while self._process is process:
                await asyncio.sleep(0.05)

    async def stop(self, grace: float) -> bool:
        """Asks it to end, and kills it after the grace; whether it ended by itself."""
        self._asked_to_end = self._process
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await self.ended()
        except TimeoutError:
            await self.kill()
            return False
        return True

    async def kill(self) -> None:
        """Ends it at once, as a crash would."""
        self.kill_now()
        await self.ended()

    def kill_now(self) -> None:
        """The same without waiting for it."""
        self._asked_to_end = self._process
        self._signal(signal.SIGKILL)

    async def ended(self) -> int | None:
        """Waits for its end; its exit code."""
        return None if self._process is None else await self._process.wait()

    def told(self) -> str:
        """What a user wants to know of it once it is started."""
        planned, found = self.planned, [f"pid {self.pid}"]
        if planned.address is not None:
            found.append(f"listens on {planned.address}")
        if planned.url is not None:
            found.append(f"HTTP on {planned.url}")
        if planned.metrics_port is not None:
            found.append(f"metrics on {LOOPBACK}:{planned.metrics_port}")
        return f"{self.name}: {', '.join(found)}"

    def last_lines(self, count: int = 8) -> list[str]:
        """The end of its log, and of what it wrote to standard error."""
        return [line for path in (self.log, self.errors) for line in _tail(path, count)]

    def _signal(self, number: int) -> None:
        if (pid := self.pid) is not None:
            # Not by the process object, which would first ask for the exit code and take it from asyncio.
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
