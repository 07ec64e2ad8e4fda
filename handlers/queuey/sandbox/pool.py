"""The pool of sandbox processes: started on demand, reused, and killed if they do not answer."""

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

_KILL_DELAY_S = 2.0
"""Grace after the time limit of a binary, after which its process is killed."""
_MODULE = "handlers.queuey.sandbox.child"
_MAX_BINARIES = 1024
"""The number of binaries cached on disk, more than can be in use at a time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The resource limits of a binary. No fuel means that instructions are not counted."""

    seconds: float
    fuel: int
    memory_bytes: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """The result of a run: without a reason it succeeded. Its output is in two files."""

    exit_code: int | None
    reason: str | None
    detail: str
    stdout: Path
    stderr: Path


class SandboxPool:
    """A pool of processes, as many as there are runs at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._idle: list[asyncio.subprocess.Process] = []
        self._folder = Path(tempfile.mkdtemp(prefix="charter-runs-"))
        self._binaries: OrderedDict[str, None] = OrderedDict()

    async def __aenter__(self) -> SandboxPool:
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
        """Create a folder for one run; remove it afterwards."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def binary(self, address: str) -> Path:
        """Return the cache path of a binary; evict the least recently used ones."""
        self._binaries[address] = None
        self._binaries.move_to_end(address)
        while len(self._binaries) > _MAX_BINARIES:
            oldest, _ = self._binaries.popitem(last=False)
            for path in (self._folder / f"{oldest}.wasm", self._find_compiled_path(oldest)):
                path.unlink(missing_ok=True)
        return self._folder / f"{address}.wasm"

    def _find_compiled_path(self, address: str) -> Path:
        return self._folder / f"{address}.compiled"

    async def run(self, address: str, binary: Path, stdin: Path, scratch: Path) -> SandboxResult:
        """Run a binary. A cancel kills the run."""
        process = self._idle.pop() if self._idle else await self._start_process()
        stdout, stderr = scratch / "stdout", scratch / "stderr"
        request = {
            "address": address,
            "binary": str(binary),
            "compiled": str(self._find_compiled_path(address)),
            "stdin": str(stdin),
            "stdout": str(stdout),
            "stderr": str(stderr),
            **asdict(self._limits),
        }
        try:
            async with asyncio.timeout(self._limits.seconds + _KILL_DELAY_S):
                result = await _exchange(process, request)
        except TimeoutError:
            await _kill(process)
            result = {"exit_code": None, "reason": "OUT_OF_TIME", "detail": "it took longer than it may"}
        except (ConnectionError, EOFError):
            code = await process.wait()
            result = {"exit_code": None, "reason": "TRAPPED", "detail": f"its process ended with {code}"}
        except BaseException:
            await _kill(process)
            raise
        else:
            self._idle.append(process)
        for path in (stdout, stderr):
            path.touch()
        if stdout.stat().st_size >= self._limits.output_bytes > 0:
            result = {**result, "reason": "OUTPUT_TOO_LARGE", "detail": "it wrote more than it may"}
        return SandboxResult(**result, stdout=stdout, stderr=stderr)

    async def _start_process(self) -> asyncio.subprocess.Process:
        settings = {"counts_fuel": self._limits.fuel > 0, "runner": os.getpid()}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            _MODULE,
            json.dumps(settings),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Pass none of the secrets of the runner's environment on.
            env={name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        )
        # The time limit of a run begins when its process is ready.
        if process.stdout is None or not await process.stdout.readline():
            raise ChildProcessError(f"a sandbox ended at its start with {await process.wait()}")
        return process


async def _exchange(process: asyncio.subprocess.Process, request: dict[str, Any]) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise EOFError
    process.stdin.write(f"{json.dumps(request)}\n".encode())
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise EOFError
    result: dict[str, Any] = json.loads(line)
    return result


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
