"""Many submissions at a time, with a result for each in the order in which they came."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from handlers.objectqueue.cli.results import Results, results
from handlers.objectqueue.cli.wishes import NoWish, Wishes
from runtime.conditions import Failure

if TYPE_CHECKING:
    from handlers.objectqueue.cli.desk import Desk


class Many:
    """Lines of JSON, each a task."""

    def __init__(self, desk: Desk, otherwise: dict[str, Any], parallel: int, *, as_json: bool) -> None:
        self._desk = desk
        self._wishes = Wishes(desk.codec, otherwise)
        self._parallel = parallel
        self._as_json = as_json
        self._submitted = 0
        self._refused = 0

    async def submit(self, path: Path) -> tuple[int, int]:
        """Submits them all; how many were submitted, and how many were not."""
        under_way: deque[tuple[int, asyncio.Task[Any]]] = deque()
        is_file = str(path) != "-"
        with _opened(path) as lines, results(_count(path)) as told:
            number = 0
            while line := lines.readline() if is_file else await asyncio.to_thread(lines.readline):
                number += 1
                if not line.strip():
                    continue
                under_way.append((number, asyncio.create_task(self._one(line))))
                if len(under_way) >= self._parallel:
                    await self._tell(under_way, told)
            while under_way:
                await self._tell(under_way, told)
        return self._submitted, self._refused

    async def _one(self, line: bytes) -> Any:
        try:
            return await self._desk.queue.submit_task(self._wishes.read(line), self._desk.call())
        except (Failure, NoWish) as problem:
            return problem

    async def _tell(self, under_way: deque[tuple[int, asyncio.Task[Any]]], told: Results) -> None:
        """Prints what came of the oldest of them, and of those behind it that are done."""
        number, task = under_way.popleft()
        self._print(number, await task, told)
        while under_way and under_way[0][1].done():
            number, task = under_way.popleft()
            self._print(number, task.result(), told)

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
    """How many lines a file has; what comes in is not known before."""
    if str(path) == "-":
        return None
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())
