"""A data folder as the property of one server at a time, for servers that do not see to that themselves."""

from __future__ import annotations

import os
import time
from pathlib import Path

from runtime.embedded.programs import EmbeddedError

_PAUSE = 0.05
_PATIENCE = 3.0


def held_folder(folder: Path) -> int:
    """An open file with a lock that ends with the server that is given it."""
    import fcntl

    held = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # A child of a server that was killed may end a moment after it.
            if time.monotonic() > until:
                os.close(held)
                raise EmbeddedError(
                    f"The data folder {folder} is in use by another server. Stop that one first."
                ) from None
            time.sleep(_PAUSE)
        else:
            return held
