"""What kind of document a browser takes an object for, by its key."""

from __future__ import annotations

import mimetypes
from functools import lru_cache

_UNKNOWN = "application/octet-stream"


def kind_of(key: str) -> str:
    """The content type that goes with the ending of a key."""
    _, dot, ending = key.rpartition("/")[2].rpartition(".")
    # Hints have no ending, and each a name of its own, which is not worth remembering.
    return _of_ending(ending) if dot else _UNKNOWN


@lru_cache(64)
def _of_ending(ending: str) -> str:
    return mimetypes.guess_type(f"x.{ending}")[0] or _UNKNOWN
