"""Writes to a file as fast as it can and tells of each change once it is acknowledged: `writer <path>`.

It is killed by the test that starts it, and loads as little as possible, for that happens thousands of times.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from runtime.stores.sqlite.file import File
from runtime.stores.sqlite.statements import statements

SYSTEM, ENTITY = "queuey", "job"
LIMITS = {"MAX_ATTEMPTS": 3, "ABANDONED_AGE": 300}


class Given(dict[str, Any]):
    """What a statement is given; whatever is not said is absent."""

    def __missing__(self, key: str) -> None:
        return None


async def live(file: File, name: str) -> None:
    """Creates, takes and completes one entity after the other."""
    found = statements(SYSTEM, ENTITY)

    def run(statement: str, **given: Any) -> Any:
        values = Given(LIMITS, now=1_000_000, **given)

        def work(connection: sqlite3.Connection) -> Any:
            return connection.execute(found[statement], values).fetchone()[0]

        return file.write(work)

    number = 0
    while True:
        number += 1
        key = f"{os.getpid()}-{name}-{number}"
        tell("pending", await run("create", record_job_id=key, record_binary_addr="b"))
        taken = await run("acquire", owner=name)
        tell("active", taken)
        tell("completed", await run("move_complete", key=taken, given_output_addr="o"))


def tell(state: str, key: str) -> None:
    os.write(1, f"{state} {key}\n".encode())


async def main(path: Path) -> None:
    file = File(path)
    file.open(SYSTEM)
    await asyncio.gather(*(live(file, f"w{number}") for number in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
