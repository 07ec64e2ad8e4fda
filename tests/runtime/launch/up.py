"""`python -m runtime.launch up` as a child process, for tests that look at it from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from runtime.call.conditions import Failure
from tests.support.eventually import eventually

Answer = TypeVar("Answer")

LAUNCH = (sys.executable, "-m", "runtime.launch")
PATIENCE = 120.0
"""Seconds after which a test gives up on a child process."""


class Up:
    """A launcher that has written its ready line."""

    def __init__(self, process: subprocess.Popen[str], errors: Path, logs: Path) -> None:
        self.process = process
        self.logs = logs
        self.ready: dict[str, Any] = {}
        self._errors = errors

    @property
    def errors(self) -> list[str]:
        """The complete lines of its standard error so far."""
        complete, _, _ = self._errors.read_text().rpartition("\n")
        return complete.splitlines()

    def pids(self) -> dict[str, int]:
        """The process id of each node."""
        found = (line.partition(": pid ") for line in self.errors if ": pid " in line)
        return {name: int(rest.partition(",")[0]) for name, _, rest in found}

    def wait_for_end(self) -> tuple[int, str]:
        """Wait for its exit code, and for its standard output after the ready line."""
        assert self.process.stdout is not None
        output = self.process.stdout.read()
        return self.process.wait(PATIENCE), output


@contextmanager
def up(folder: Path, *arguments: str, **environment: str) -> Iterator[Up]:
    """Bring a deployment up on free ports, from its ready line until the end of the test."""
    errors, logs = folder / "errors.txt", folder / "logs"
    with errors.open("w") as stream:
        process = subprocess.Popen(
            (*LAUNCH, "up", *arguments, "--ports", "auto", "--logs", str(logs)),
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
            env={**os.environ, **environment},
        )
    assert process.stdout is not None
    running = Up(process, errors, logs)
    with process.stdout as output:
        try:
            word, _, text = output.readline().partition(" ")
            assert word == "ready", running.errors
            running.ready = json.loads(text)
            yield running
        finally:
            process.terminate()
            running.wait_for_end()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher with arguments with which it ends by itself."""
    return subprocess.run(
        (*LAUNCH, *arguments), capture_output=True, text=True, timeout=PATIENCE, check=False
    )


async def retry_call(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Make a call again until it is answered, if it does no harm when it is repeated.

    Its deadline is a second or less by the spec, in which a busy machine may not answer.
    """

    async def answer() -> tuple[Answer | None, Failure | None]:
        try:
            return await call(), None
        except Failure as failure:
            if failure.grpc not in ("DEADLINE_EXCEEDED", "UNAVAILABLE"):
                raise
            return None, failure

    found, _ = await eventually(answer, "an answer", lambda seen: seen[1] is None, PATIENCE)
    return cast("Answer", found)
