"""Bulk submission: many tasks concurrently, with a result for each in the order of the lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from generated.objectqueue.messages import PENDING
from handlers.objectqueue.cli.line_reader import read_lines
from handlers.objectqueue.cli.results import Results, open_results
from handlers.objectqueue.cli.submissions import InvalidSubmission, SubmissionParser
from runtime.call.conditions import Failure

if TYPE_CHECKING:
    from handlers.objectqueue.cli.local_node import LocalNode


StartedLine = tuple[int, "asyncio.Task[Any]"]
"""The number of a line, and its submission in flight."""


class BulkSubmission:
    """A submission of JSON lines, each a task."""

    def __init__(self, node: LocalNode, defaults: dict[str, Any], parallel: int, *, as_json: bool) -> None:
        self._node = node
        self._parser = SubmissionParser(node.codec, defaults)
        self._slots = asyncio.Semaphore(parallel)
        self._as_json = as_json
        self._submitted = 0
        self._refused = 0
        self.waiting_types: set[str] = set()
        """Types of the submitted tasks that wait."""

    async def submit(self, path: Path) -> tuple[int, int]:
        """Submit all lines; return how many were submitted, and how many were refused."""
        started: asyncio.Queue[StartedLine | None] = asyncio.Queue()
        with _open_lines(path) as stream, open_results(_count_lines(path)) as output:
            # Print each result as soon as it is there, and not only when the next line arrives.
            steps = [
                asyncio.create_task(each)
                for each in (self._start_all(stream, started), self._print_all(started, output))
            ]
            try:
                await asyncio.gather(*steps)
            finally:
                for each in steps:
                    each.cancel()
        return self._submitted, self._refused

    async def _start_all(self, stream: BinaryIO, started: asyncio.Queue[StartedLine | None]) -> None:
        number = 0
        async for line in read_lines(stream):
            number += 1
            if line.strip():
                await self._slots.acquire()
                started.put_nowait((number, asyncio.create_task(self._submit_line(line))))
        started.put_nowait(None)

    async def _submit_line(self, line: bytes) -> Any:
        try:
            return await self._node.queue.submit_task(self._parser.parse(line), self._node.call())
        except (Failure, InvalidSubmission) as problem:
            return problem

    async def _print_all(self, started: asyncio.Queue[StartedLine | None], output: Results) -> None:
        """Print the result of each line, in order."""
        while (each := await started.get()) is not None:
            number, task = each
            self._print_result(number, await task, output)
            self._slots.release()

    def _print_result(self, number: int, result: Any, output: Results) -> None:
        if isinstance(result, Failure | InvalidSubmission):
            self._refused += 1
            problem = result.message if isinstance(result, Failure) else str(result)
            if self._as_json:
                output.print_json({"line": number, "task_id": None, "problem": problem})
            else:
                output.print_line("-")
                output.print_message(f"line {number}: {problem}")
        else:
            self._submitted += 1
            if result.task.status == PENDING:
                self.waiting_types.add(result.task.task_type)
            if self._as_json:
                output.print_json({"line": number, "task_id": result.task.id, "created": result.created})
            else:
                output.print_line(result.task.id)
        output.advance()


@contextmanager
def _open_lines(path: Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
    else:
        with path.open("rb") as lines:
            yield lines


def _count_lines(path: Path) -> int | None:
    """Count the lines of a file; None for standard input and named pipes."""
    if str(path) == "-" or not path.is_file():
        return None
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())
