"""`python -m bench.peers.apps.our_worker <node>`: a node with job types that tell their starts and runs."""

from __future__ import annotations

import sys

from bench.peers.apps.producer import NOTHING, PICKUP, note_run, note_start
from handlers.jobs import Job, job
from runtime.serve import main


async def pickup(given: Job) -> None:
    """Print how long it took to be started."""
    assert given.payload is not None
    note_start(given.payload["sent"])


async def noop(given: Job) -> None:
    """Do nothing."""
    assert given.payload is not None
    note_run(given.payload["n"])


job(PICKUP)(pickup)
job(NOTHING)(noop)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
