"""`python -m bench.peers.apps.our_worker <node>`: a node with a job type that tells its start."""

from __future__ import annotations

import sys

from bench.peers.apps.producer import PICKUP, note_start
from handlers.jobs import Job, job
from runtime.serve import main


async def pickup(given: Job) -> None:
    """Says how long it took to be started."""
    assert given.payload is not None
    note_start(given.payload["sent"])


job(PICKUP)(pickup)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
