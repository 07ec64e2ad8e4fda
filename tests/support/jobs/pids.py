"""Processes by their ids, as tests of job functions look for them."""

from __future__ import annotations

from pathlib import Path

from tests.support.eventually import eventually


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def wait_until_gone(*pids: int) -> None:
    """Wait until none of some processes exists."""
    await eventually(lambda: not any(map(is_running, pids)))
