"""Run plain job functions in child processes, so that they can be killed at any point.

A child is reused for the next run. One whose run is stopped is killed, with all processes that it started.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from handlers.jobs.child import LENGTH, encode_frame
from handlers.jobs.loader import find_program
from handlers.jobs.registry import Job, JobFailed, JobFatal, JobRaised, Output, RegisteredFunction

_START = "import sys; from handlers.jobs.child import main; main(int(sys.argv[1]), sys.argv[2])"
_SENT_FIELDS = (
    "job_id",
    "job_type",
    "payload",
    "attempt",
    "token",
    "work_duration_ms",
    "payload_size_bytes",
    "max_output_bytes",
    "labels",
)


class ProcessPool:
    """A pool of child processes with the same job functions; it grows with the runs in flight at a time."""

    def __init__(self, names: str | None = None) -> None:
        self._names = names or ""
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._ending: set[asyncio.Task[int]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in (*self._idle, *self._busy):
            self._end(child)
        await asyncio.gather(*self._ending)

    def notify_stopping(self) -> None:
        """Notify the running functions that the worker is shutting down."""
        for child in self._busy:
            child.notify_stopping()

    async def __call__(self, function: RegisteredFunction, job: Job) -> Output:
        """Run the function of a job, which the child finds by its type.

        If this is cancelled, the process is killed before it returns.
        """
        while (child := self._pop_idle()) is not None:
            with suppress(_NeverStarted):  # It died while idle, which was not visible yet: retry.
                return await self._run(child, function, job)
        try:
            return await self._run(await _Child.start(self._names), function, job)
        except _NeverStarted as error:
            raise JobFailed("CRASHED", f"CRASHED: {error}") from None

    async def _run(self, child: _Child, function: RegisteredFunction, job: Job) -> Output:
        self._busy.add(child)
        is_usable = False
        try:
            answer = await child.run(function, job)
            is_usable = "unusable" not in answer
        finally:
            self._busy.discard(child)
            if is_usable:
                self._idle.append(child)
            else:
                # The caller may start the next run of the job once this returns, so this one must have ended.
                await _wait_shielded(self._end(child))
        return _parse_answer(answer)

    def _pop_idle(self) -> _Child | None:
        while self._idle:
            child = self._idle.pop()
            if child.is_alive():
                return child
            self._end(child)
        return None

    def _end(self, child: _Child) -> asyncio.Task[int]:
        child.kill()
        ending = asyncio.get_running_loop().create_task(child.wait())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending


async def _wait_shielded(ending: asyncio.Task[int]) -> None:
    """Wait for the end of a process, however often this is cancelled; raise the cancel afterwards."""
    canceled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError as error:
            canceled = error
    if canceled is not None:
        raise canceled


class _NeverStarted(Exception):
    """A process ended before it started its job; the message says how it ended."""


class _Child:
    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, names: str) -> Self:
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            try:
                # Not by the event loop: uvloop runs Python in the child between fork and exec, where it hangs
                # now and then if the worker has threads of other libraries, as those of grpcio.
                process = subprocess.Popen(
                    (sys.executable, "-c", _START, str(theirs.fileno()), names),
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # What a function prints goes to the log of the worker.
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
            except BaseException:
                writer.close()
                raise
        return cls(process, reader, writer)

    def is_alive(self) -> bool:
        """Whether an idle child still runs: it sends nothing, so anything to read is its end of file."""
        if self._process.poll() is not None or self._reader.at_eof():
            return False
        end = select.poll()
        end.register(self._writer.get_extra_info("socket").fileno(), select.POLLIN)
        return not end.poll(0)

    def notify_stopping(self) -> None:
        self._writer.write(encode_frame({"stop": True}))

    async def run(self, function: RegisteredFunction, job: Job) -> Mapping[str, Any]:
        """Send a job and wait for its result."""
        fields = {name: getattr(job, name) for name in _SENT_FIELDS}
        self._writer.write(encode_frame({"job": {**fields, "program": find_program(function)}}))
        if job.is_stopping():
            self.notify_stopping()
        has_started = False
        try:
            while True:
                (size,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                answer: dict[str, Any] = json.loads(await self._reader.readexactly(size))
                if "begun" in answer:
                    has_started = True
                elif "progress" in answer:
                    await job.report(answer["progress"])
                else:
                    return answer
        except (EOFError, ConnectionError):
            exit_text = await self._describe_exit()
            if not has_started:
                raise _NeverStarted(exit_text) from None
            raise JobFailed("CRASHED", f"CRASHED: {exit_text}") from None

    def kill(self) -> None:
        self._writer.close()
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for the process to exit; return its exit code."""
        return await asyncio.to_thread(self._process.wait)

    async def _describe_exit(self) -> str:
        code = await self.wait()
        if code < 0:
            return f"the process of the function was ended by {signal.Signals(-code).name}"
        return f"the process of the function ended by itself, with exit code {code}"


def _parse_answer(answer: Mapping[str, Any]) -> Output:
    if "unusable" in answer:
        raise JobFailed("HANDLERS_UNUSABLE", f"HANDLERS_UNUSABLE: {answer['unusable']}")
    if "raised" in answer:
        raise JobRaised(answer["raised"])
    if "failed" in answer:
        raised = JobFatal if answer.get("is_final") else JobFailed
        raise raised(answer["failed"], answer.get("summary", ""))
    text: str = answer["json"]
    content = text.encode() if answer["content"] is None else base64.b64decode(answer["content"])
    return Output(content, answer["summary"], json.loads(text), text)
