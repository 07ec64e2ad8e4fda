"""`python -m runtime.launch up` as a child process, for tests that look at it from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from runtime.call.conditions import Failure

Answer = TypeVar("Answer")

LAUNCH = (sys.executable, "-m", "runtime.launch")
PATIENCE = 120.0
"""Seconds after which a test gives up on a child process."""


class Up:
    """A launcher that has said that it is ready."""

    def __init__(self, process: subprocess.Popen[str], told: Path, logs: Path) -> None:
        self.process = process
        self.logs = logs
        self.ready: dict[str, Any] = {}
        self._told = told

    @property
    def told(self) -> list[str]:
        """What it wrote to standard error so far, without a last line that is still being written."""
        complete, _, _ = self._told.read_text().rpartition("\n")
        return complete.splitlines()

    def pids(self) -> dict[str, int]:
        """The process id of each node."""
        found = (line.partition(": pid ") for line in self.told if ": pid " in line)
        return {name: int(rest.partition(",")[0]) for name, _, rest in found}

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what came on standard output after the ready line."""
        assert self.process.stdout is not None
        output = self.process.stdout.read()
        return self.process.wait(PATIENCE), output


@contextmanager
def up(folder: Path, *arguments: str, **environment: str) -> Iterator[Up]:
    """A deployment on free ports, from its ready line until the test is over."""
    told, logs = folder / "told.txt", folder / "logs"
    with told.open("w") as errors:
        process = subprocess.Popen(
            (*LAUNCH, "up", *arguments, "--ports", "auto", "--logs", str(logs)),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **environment},
        )
    assert process.stdout is not None
    running = Up(process, told, logs)
    with process.stdout as output:
        try:
            word, _, text = output.readline().partition(" ")
            assert word == "ready", running.told
            running.ready = json.loads(text)
            yield running
        finally:
            process.terminate()
            running.ended()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The launcher, with arguments that make it end by itself."""
    return subprocess.run(
        (*LAUNCH, *arguments), capture_output=True, text=True, timeout=PATIENCE, check=False
    )


async def answered(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What comes of a call that does no harm when it is repeated.

    Its deadline is a second or less by the spec, in which a busy machine may answer nobody.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return await ask()
        except Failure as failure:
            if failure.grpc not in ("DEADLINE_EXCEEDED", "UNAVAILABLE") or time.monotonic() > until:
                raise
