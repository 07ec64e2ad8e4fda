"""Processes that run binaries: started when they are needed, used again, and killed if they do not answer."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

_SLACK_S = 2.0
"""How much later than a binary should have ended its process is given up."""
_MODULE = "handlers.queuey.sandbox.child"
_KEPT = 1024
"""How many binaries stay on disk, more than can be in use at a time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a binary may use. No fuel means that instructions are not counted."""

    seconds: float
    fuel: int
    memory_bytes: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    """How a run ended: without a reason it did what it should. What it wrote is in two files."""

    exit_code: int | None
    reason: str | None
    detail: str
    stdout: Path
    stderr: Path


class Sandboxes:
    """As many processes as there are runs at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._idle: list[asyncio.subprocess.Process] = []
        self._folder = Path(tempfile.mkdtemp(prefix="charter-runs-"))
        self._kept: OrderedDict[str, None] = OrderedDict()

    async def __aenter__(self) -> Sandboxes:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._idle:
            await _kill(process)
        self._idle.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    @asynccontextmanager
    async def scratch(self) -> AsyncIterator[Path]:
        """A folder for one run, gone afterwards."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def binary(self, address: str) -> Path:
        """Where a binary is kept from one run to the next; those that nobody wanted for long are removed."""
        self._kept[address] = None
        self._kept.move_to_end(address)
        while len(self._kept) > _KEPT:
            old, _ = self._kept.popitem(last=False)
            for path in (self._folder / f"{old}.wasm", self._compiled(old)):
                path.unlink(missing_ok=True)
        return self._folder / f"{address}.wasm"

    def _compiled(self, address: str) -> Path:
        return self._folder / f"{address}.compiled"

    async def run(self, address: str, binary: Path, stdin: Path, scratch: Path) -> Run:
        """Runs a binary. Whoever cancels this ends the run."""
        process = self._idle.pop() if self._idle else await self._start()
        stdout, stderr = scratch / "stdout", scratch / "stderr"
        wanted = {
            "address": address,
            "binary": str(binary),
            "compiled": str(self._compiled(address)),
            "stdin": str(stdin),
            "stdout": str(stdout),
            "stderr": str(stderr),
            **asdict(self._limits),
        }
        try:
            async with asyncio.timeout(self._limits.seconds + _SLACK_S):
                ended = await _exchange(process, wanted)
        except TimeoutError:
            await _kill(process)
            ended = {"exit_code": None, "reason": "OUT_OF_TIME", "detail": "it took longer than it may"}
        except (ConnectionError, EOFError):
            code = await process.wait()
            ended = {"exit_code": None, "reason": "TRAPPED", "detail": f"its process ended with {code}"}
        except BaseException:
            await _kill(process)
            raise
        else:
            self._idle.append(process)
        for path in (stdout, stderr):
            path.touch()
        if stdout.stat().st_size >= self._limits.output_bytes > 0:
            ended = {**ended, "reason": "OUTPUT_TOO_LARGE", "detail": "it wrote more than it may"}
        return Run(**ended, stdout=stdout, stderr=stderr)

    async def _start(self) -> asyncio.subprocess.Process:
        settings = {"counts_fuel": self._limits.fuel > 0, "runner": os.getpid()}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            _MODULE,
            json.dumps(settings),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # It has none of the secrets that the runner was started with.
            env={name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        )
        # The time of a run begins when somebody is there to run it.
        if process.stdout is None or not await process.stdout.readline():
            raise ChildProcessError(f"a sandbox ended at its start with {await process.wait()}")
        return process


async def _exchange(process: asyncio.subprocess.Process, wanted: dict[str, Any]) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise EOFError
    process.stdin.write(f"{json.dumps(wanted)}\n".encode())
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise EOFError
    ended: dict[str, Any] = json.loads(line)
    return ended


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
