"""Many submissions at a time, with a result for each in the order in which they came."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from generated.objectqueue.messages import PENDING
from handlers.objectqueue.cli.line_reader import arriving
from handlers.objectqueue.cli.results import Results, results
from handlers.objectqueue.cli.submissions import NoWish, Wishes
from runtime.call.conditions import Failure

if TYPE_CHECKING:
    from handlers.objectqueue.cli.local_node import Desk


Begun = tuple[int, "asyncio.Task[Any]"]
"""The number of a line, and its submission."""


class Many:
    """Lines of JSON, each a task."""

    def __init__(self, desk: Desk, otherwise: dict[str, Any], parallel: int, *, as_json: bool) -> None:
        self._desk = desk
        self._wishes = Wishes(desk.codec, otherwise)
        self._room = asyncio.Semaphore(parallel)
        self._as_json = as_json
        self._submitted = 0
        self._refused = 0
        self.waiting_types: set[str] = set()
        """Types of tasks that were submitted and wait."""

    async def submit(self, path: Path) -> tuple[int, int]:
        """Submits them all; how many were submitted, and how many were not."""
        begun: asyncio.Queue[Begun | None] = asyncio.Queue()
        with _opened(path) as stream, results(_count(path)) as told:
            # Whatever comes slowly is told as soon as it is done, and not when the next one has come.
            both = [
                asyncio.create_task(each) for each in (self._begin(stream, begun), self._tell(begun, told))
            ]
            try:
                await asyncio.gather(*both)
            finally:
                for each in both:
                    each.cancel()
        return self._submitted, self._refused

    async def _begin(self, stream: BinaryIO, begun: asyncio.Queue[Begun | None]) -> None:
        number = 0
        async for line in arriving(stream):
            number += 1
            if line.strip():
                await self._room.acquire()
                begun.put_nowait((number, asyncio.create_task(self._one(line))))
        begun.put_nowait(None)

    async def _one(self, line: bytes) -> Any:
        try:
            return await self._desk.queue.submit_task(self._wishes.read(line), self._desk.call())
        except (Failure, NoWish) as problem:
            return problem

    async def _tell(self, begun: asyncio.Queue[Begun | None], told: Results) -> None:
        """Prints what came of each, in their order."""
        while (each := await begun.get()) is not None:
            number, task = each
            self._print(number, await task, told)
            self._room.release()

    def _print(self, number: int, result: Any, told: Results) -> None:
        if isinstance(result, Failure | NoWish):
            self._refused += 1
            problem = result.message if isinstance(result, Failure) else str(result)
            if self._as_json:
                told.json({"line": number, "task_id": None, "problem": problem})
            else:
                told.line("-")
                told.say(f"line {number}: {problem}")
        else:
            self._submitted += 1
            if result.task.status == PENDING:
                self.waiting_types.add(result.task.task_type)
            if self._as_json:
                told.json({"line": number, "task_id": result.task.id, "created": result.created})
            else:
                told.line(result.task.id)
        told.advance()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
    else:
        with path.open("rb") as lines:
            yield lines


def _count(path: Path) -> int | None:
    """How many lines a file has; of what comes in, or through a pipe with a name, nobody knows before."""
    if str(path) == "-" or not path.is_file():
        return None
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())
