"""Content types of objects, by the endings of their keys."""

from __future__ import annotations

import mimetypes
from functools import lru_cache

_UNKNOWN = "application/octet-stream"


def kind_of(key: str) -> str:
    """Return the content type for the ending of a key."""
    _, dot, ending = key.rpartition("/")[2].rpartition(".")
    # Index entries have no ending and each a unique name, which is not worth an entry in the cache.
    return _of_ending(ending) if dot else _UNKNOWN


@lru_cache(64)
def _of_ending(ending: str) -> str:
    return mimetypes.guess_type(f"x.{ending}")[0] or _UNKNOWN
