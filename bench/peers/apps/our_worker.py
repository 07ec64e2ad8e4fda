"""Worker node whose job functions record starts and runs: `python -m bench.peers.apps.our_worker <node>`."""

from __future__ import annotations

import sys

from bench.peers.apps.producer import NOTHING, PICKUP, record_run, record_start
from handlers.jobs import Job, job
from runtime.serve import main


async def pickup(job_argument: Job) -> None:
    """Record the time from submit to start."""
    assert job_argument.payload is not None
    record_start(job_argument.payload["sent"])


async def noop(job_argument: Job) -> None:
    """Do nothing."""
    assert job_argument.payload is not None
    record_run(job_argument.payload["n"])


job(PICKUP)(pickup)
job(NOTHING)(noop)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
