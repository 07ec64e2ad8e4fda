"""Writes to a file as fast as it can and tells of each change once it is acknowledged: `writer <path>`.

It is killed by the test that starts it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from generated.queuey.lifecycle import JOB
from generated.queuey.records import JobRecord
from generated.queuey.system import SYSTEM
from runtime.call import Call
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.sqlite import SqliteDatabase, SqliteStore
from runtime.stores.sqlite.migrations import read_migrations
from runtime.world import RealWorld

VALUES = {"MAX_ATTEMPTS": 3, "ABANDONED_AGE": 300.0, "SWEEP_INTERVAL": 5.0, "STARTUP_GRACE": 0.0}


async def live(store: SqliteStore[JobRecord], name: str, call: Call) -> None:
    """Create, claim and complete one entity after the other."""
    number = 0
    while True:
        number += 1
        key = f"{os.getpid()}-{name}-{number}"
        await store.create(JobRecord(job_id=key, binary_addr="b"), call)
        tell("pending", key)
        (claimed,) = await store.claim(name, 1, call)
        tell("active", claimed.job_id)
        lease = LeaseProof(name, claimed.run_attempts)
        await store.settle(LeaseSettlement(claimed.job_id, lease, "complete", {"output_addr": "o"}), call)
        tell("completed", claimed.job_id)


def tell(state: str, key: str) -> None:
    os.write(1, f"{state} {key}\n".encode())


async def main(path: Path) -> None:
    world = RealWorld()
    file = SqliteDatabase(path)
    store = SqliteStore(SYSTEM, JOB, JobRecord, file, world, Metrics(), VALUES)
    file.open(SYSTEM.name, read_migrations(SYSTEM.name))
    call = Call(world=world, log=Log("writer", "ERROR", world), caller="anyone")
    await asyncio.gather(*(live(store, f"w{number}", call) for number in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
