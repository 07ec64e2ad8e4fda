"""Child processes of a worker: how they are started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORKED = """
import asyncio, os, sys, uvloop
from handlers.jobs import Job
from handlers.jobs.loader import load
from handlers.jobs.processes import ProcessPool
from runtime.world import RealWorld

os.register_at_fork(after_in_child=lambda: os.write(2, b"Python ran in the child"))

async def main():
    functions = load("tests.support.jobs.user_functions")
    async with ProcessPool("tests.support.jobs.user_functions") as processes:
        given = Job(job_id="a", job_type="greet", world=RealWorld(), payload={"name": "you"})
        print((await processes(functions["greet"], given)).value["hello"])

uvloop.run(main())
"""


def test_no_python_runs_in_a_child_before_its_program() -> None:
    """Between fork and exec it could meet the locks of threads that are not there any more, and hang."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "you\n", "")
