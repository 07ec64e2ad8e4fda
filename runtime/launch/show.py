"""What a demo has in common with others: a line for each thing that it tries, and what came of it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from runtime.call.conditions import Failure


@dataclass
class Line:
    """One line of the closing table."""

    what: str
    expected: str
    seen: str


class Show(ABC):
    """Things that are tried one after the other."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    @abstractmethod
    async def run(self) -> None:
        """Tries them, and notes what came of each."""

    def note(self, what: str, expected: str, seen: str) -> None:
        """Remembers what came of something."""
        self.lines.append(Line(what, expected, seen))

    async def shown(self, console: Console, patience: float) -> int:
        """Runs and prints what was seen; 0 if every outcome is the expected one."""
        is_whole = False
        try:
            async with asyncio.timeout(patience):
                await self.run()
            is_whole = True
        except TimeoutError:
            console.print(f"Not all had ended after {patience:g} s.")
        except Failure as failure:
            console.print(f"The demo broke off: {failure}", markup=False)
        table = Table("what", "expected", "seen", "")
        for line in self.lines:
            table.add_row(line.what, line.expected, line.seen, "ok" if line.seen == line.expected else "NO")
        console.print(table)
        return 0 if is_whole and all(line.seen == line.expected for line in self.lines) else 1
