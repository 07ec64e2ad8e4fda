"""`python -m tests.runtime.stores.history.lone_writer REDIS DATABASE`: a writer in a process of its own."""

from __future__ import annotations

import asyncio
import sys

from tests.runtime.stores.history.kit import Kit


async def main(redis_url: str, database_url: str) -> None:
    """Writes until it is killed."""
    kit = Kit(redis_url, database_url)
    running = kit.begin()
    print("writing", flush=True)
    await running


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
