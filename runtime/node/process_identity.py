"""Which process this is, so that another one on the same machine can find out whether it still lives."""

from __future__ import annotations

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START_FIELD = 19
"""Where the start time is in what follows the name of a process in its `stat`."""


def name_process() -> str | None:
    """Machine, process namespace, number and start time of this process; None where they are not known."""
    try:
        started = _start_of(os.getpid())
        return None if started is None else f"{_here()}/{os.getpid()}/{started}"
    except OSError:
        return None


def is_gone(named: str | None) -> bool | None:
    """Whether a process of that name has ended; None where it was on another machine or nothing is known."""
    if not named:
        return None
    here, _, rest = named.rpartition("/")
    here, _, number = here.rpartition("/")
    try:
        if here != _here() or not number.isdecimal():
            return None
        return _start_of(int(number)) != rest
    except OSError:
        return None


def _here() -> str:
    """The machine since it was started, and the namespace that numbers of processes are of."""
    return f"{_BOOT.read_text().strip()}/{Path('/proc/self/ns/pid').readlink()}"


def _start_of(number: int) -> str | None:
    """When a process was started, in ticks of the machine; None where there is no such process."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *others = stat.rpartition(")")[2].split()
    return None if state in "ZX" else others[_START_FIELD - 1]
