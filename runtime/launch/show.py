"""Report of a demo: a table line for each step, with the expected and the actual outcome."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from runtime.call.conditions import Failure


@dataclass
class ReportLine:
    """One line of the table."""

    what: str
    expected: str
    seen: str


class DemoReport(ABC):
    """The steps of a demo, and the table of their outcomes."""

    def __init__(self) -> None:
        self.lines: list[ReportLine] = []

    @abstractmethod
    async def run(self) -> None:
        """Run the steps, and note the outcome of each."""

    def note(self, what: str, expected: str, seen: str) -> None:
        """Add a line to the table."""
        self.lines.append(ReportLine(what, expected, seen))

    async def run_and_print(self, console: Console, patience: float) -> int:
        """Run the demo and print the table; 0 if every outcome is the expected one."""
        is_complete = False
        try:
            async with asyncio.timeout(patience):
                await self.run()
            is_complete = True
        except TimeoutError:
            console.print(f"Not all had ended after {patience:g} s.")
        except Failure as failure:
            console.print(f"The demo broke off: {failure}", markup=False)
        table = Table("what", "expected", "seen", "")
        for line in self.lines:
            table.add_row(line.what, line.expected, line.seen, "ok" if line.seen == line.expected else "NO")
        console.print(table)
        return 0 if is_complete and all(line.seen == line.expected for line in self.lines) else 1
