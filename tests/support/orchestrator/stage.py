"""A folder common to tests and the jobs they run: a ledger of runs, and gates that tests open.

It outlives every process and every outage of the database, so a run that was begun is known whatever came
of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

VARIABLE = "CHARTER_STAGE"
"""The variable of a worker that has the folder."""
_PAUSE = 0.01

BEGUN, ENDED, STOPPED = "begun", "ended", "stopped"


class Run(NamedTuple):
    """One line of the ledger: a run that began, came to its end, or was canceled."""

    phase: str
    job_id: str
    attempt: int
    worker: str
    at_ns: int


class Stage:
    """Runs and gates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ledger = folder / "ledger.jsonl"

    def write(self, phase: str, job_id: str, attempt: int, worker: str) -> None:
        """Append a line in one write, so that lines of many processes do not mix and none is half lost."""
        line = json.dumps([phase, job_id, attempt, worker, time.monotonic_ns()]) + "\n"
        file = os.open(self._ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def runs(self, phase: str = "", job_ids: Sequence[str] = ()) -> list[Run]:
        """The lines written so far, in their order."""
        if not self._ledger.exists():
            return []
        # The last line may be half written.
        complete = self._ledger.read_bytes().split(b"\n")[:-1]
        found = [Run(*json.loads(line)) for line in complete]
        wanted = set(job_ids)
        return [run for run in found if phase in ("", run.phase) and (not wanted or run.job_id in wanted)]

    def attempts(self, job_id: str, phase: str = BEGUN) -> list[int]:
        """The attempts of one job that came as far as that."""
        return [run.attempt for run in self.runs(phase, [job_id])]

    def open(self, gate: str) -> None:
        """Let all runs pass that wait at the gate, or will."""
        (self.folder / gate).touch()

    async def pass_gate(self, gate: str) -> None:
        """Wait at a gate until it is opened."""
        while not (self.folder / gate).exists():
            await asyncio.sleep(_PAUSE)
