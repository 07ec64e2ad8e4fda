"""Identity of a process, by which another one on the same machine can check whether it is alive."""

from __future__ import annotations

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START_FIELD = 19
"""Index of the start time in the fields of `stat` behind the name of a process."""


def name_process() -> str | None:
    """Return boot id, pid namespace, pid and start time of this process; None where they are not known."""
    try:
        started = _start_of(os.getpid())
        return None if started is None else f"{_here()}/{os.getpid()}/{started}"
    except OSError:
        return None


def is_gone(named: str | None) -> bool | None:
    """Whether the process of an identity has ended; None for another machine, or if it is not known."""
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
    """Return the boot id of the machine, and the pid namespace."""
    return f"{_BOOT.read_text().strip()}/{Path('/proc/self/ns/pid').readlink()}"


def _start_of(number: int) -> str | None:
    """Return the start time of a process in clock ticks; None where there is no such process."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *others = stat.rpartition(")")[2].split()
    return None if state in "ZX" else others[_START_FIELD - 1]
