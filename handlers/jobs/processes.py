"""Runs plain job functions in child processes, so that they can be stopped whatever they are doing.

A child is used again for the next run. One whose run is stopped is killed, with all that it started.
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

from handlers.jobs.child import LENGTH, framed
from handlers.jobs.loader import program_of
from handlers.jobs.registry import Job, JobFailed, JobFatal, JobRaised, Output, Registered

_START = "import sys; from handlers.jobs.child import main; main(int(sys.argv[1]), sys.argv[2])"
_SENT = (
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


class Processes:
    """As many children as runs were ever under way at a time, each with the functions of the same modules."""

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

    def tell_stopping(self) -> None:
        """Lets the functions that run know that the worker is about to stop."""
        for child in self._busy:
            child.tell_stopping()

    async def __call__(self, function: Registered, given: Job) -> Output:
        """Runs the function of a job, which the child finds by its type.

        If this is cancelled the process is killed, and nothing of it goes on.
        """
        while (child := self._waiting()) is not None:
            with suppress(_NeverBegan):  # It was dying while it was idle, and nothing showed it yet.
                return await self._run(child, function, given)
        try:
            return await self._run(await _Child.start(self._names), function, given)
        except _NeverBegan as ended:
            raise JobFailed("CRASHED", f"CRASHED: {ended}") from None

    async def _run(self, child: _Child, function: Registered, given: Job) -> Output:
        self._busy.add(child)
        is_usable = False
        try:
            answer = await child.run(function, given)
            is_usable = "unusable" not in answer
        finally:
            self._busy.discard(child)
            if is_usable:
                self._idle.append(child)
            else:
                # Whoever is told that the run is over may begin the next one, so it has to be.
                await _uninterrupted(self._end(child))
        return _output(answer)

    def _waiting(self) -> _Child | None:
        while self._idle:
            child = self._idle.pop()
            if child.is_alive():
                return child
            self._end(child)
        return None

    def _end(self, child: _Child) -> asyncio.Task[int]:
        child.kill()
        ending = asyncio.get_running_loop().create_task(child.ended())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending


async def _uninterrupted(ending: asyncio.Task[int]) -> None:
    """Wait for the end of a process, however often that is cancelled; the cancel counts afterwards."""
    canceled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError as error:
            canceled = error
    if canceled is not None:
        raise canceled


class _NeverBegan(Exception):
    """A process ended before it began with what it was given; how it ended."""


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
                    stdout=2,  # What a function prints is for whoever watches the worker.
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
            except BaseException:
                writer.close()
                raise
        return cls(process, reader, writer)

    def is_alive(self) -> bool:
        """Asked of one that has nothing to say: what there is to be read is then its end, seen yet or not."""
        if self._process.poll() is not None or self._reader.at_eof():
            return False
        end = select.poll()
        end.register(self._writer.get_extra_info("socket").fileno(), select.POLLIN)
        return not end.poll(0)

    def tell_stopping(self) -> None:
        self._writer.write(framed({"stop": True}))

    async def run(self, function: Registered, given: Job) -> Mapping[str, Any]:
        """Sends a job and waits for what came of it."""
        asked = {name: getattr(given, name) for name in _SENT}
        self._writer.write(framed({"job": {**asked, "program": program_of(function)}}))
        if given.is_stopping():
            self.tell_stopping()
        has_begun = False
        try:
            while True:
                (size,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                answer: dict[str, Any] = json.loads(await self._reader.readexactly(size))
                if "begun" in answer:
                    has_begun = True
                elif "progress" in answer:
                    await given.report(answer["progress"])
                else:
                    return answer
        except (EOFError, ConnectionError):
            how = await self._how_ended()
            if not has_begun:
                raise _NeverBegan(how) from None
            raise JobFailed("CRASHED", f"CRASHED: {how}") from None

    def kill(self) -> None:
        self._writer.close()
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def ended(self) -> int:
        """The exit code, when it has ended."""
        return await asyncio.to_thread(self._process.wait)

    async def _how_ended(self) -> str:
        code = await self.ended()
        if code < 0:
            return f"the process of the function was ended by {signal.Signals(-code).name}"
        return f"the process of the function ended by itself, with exit code {code}"


def _output(answer: Mapping[str, Any]) -> Output:
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
