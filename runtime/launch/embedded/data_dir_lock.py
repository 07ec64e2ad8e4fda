"""Lock of a data directory, for servers that do not lock theirs themselves."""

from __future__ import annotations

import os
import time
from pathlib import Path

from runtime.launch.embedded.programs import EmbeddedError

_PAUSE = 0.05
_PATIENCE = 3.0


def lock_data_dir(folder: Path) -> int:
    """Lock a data directory; return the open file, whose lock ends with the server that inherits it."""
    import fcntl

    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # A child of a killed server may hold the lock a moment longer.
            if time.monotonic() > until:
                os.close(lock)
                raise EmbeddedError(
                    f"The data folder {folder} is in use by another server. Stop that one first."
                ) from None
            time.sleep(_PAUSE)
        else:
            return lock
