"""Processes that a node starts: its carrier does not disturb them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.specs.neutral import FOLDER, project

ROOT = Path(__file__).resolve().parents[5]
NODE = """
import asyncio, sys
import uvloop
from runtime.transport.grpc import carrier
carrier._load(sys.argv[1])  # As a node does, before anything else has loaded the library.
from tests.support.specs.neutral import open_session
open_session()
from tests.runtime.transport.grpc.contract.support.carriers import open_client, start_server

async def main():
    async with start_server(sys.argv[1]) as served, open_client(sys.argv[1], served.address) as call:
        calls = asyncio.gather(*(call(str(number)) for number in range(500)))
        for _ in range(20):
            process = await asyncio.create_subprocess_exec("true")
            assert await process.wait() == 0
        await calls

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""


def test_a_node_starts_processes_while_it_is_called(carrier: str) -> None:
    """The event loop of nodes forks for them, and no handler of the library runs in the children."""
    done = subprocess.run(
        [sys.executable, "-c", NODE, carrier],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", FOLDER: str(project())},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if "fork" in line]) == (0, [])
