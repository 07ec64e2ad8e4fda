"""Temporary files in memory, where the machine has room: tests write and remove many, and databases sync."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 8 << 30
"""Bytes that must be free: parallel workers have up to three GB there at a time."""


def use_memory(folder: Path = MEMORY) -> Path | None:
    """Make a folder for the temporary files of this process and its children, unless the user has chosen one.

    It is removed after the session. Files of tests that failed stay longer, as pytest keeps them beside it.
    """
    if "TMPDIR" in os.environ or not has_room(folder):
        return None
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
    # The name is short, as paths of sockets have at most 107 characters.
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="charter-", dir=folder)
    Path(tempfile.tempdir).chmod(0o711)
    return Path(tempfile.tempdir)


def has_room(folder: Path) -> bool:
    """Whether the folder can be written, may have programs, and has the bytes."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC and shutil.disk_usage(folder).free >= ROOM
