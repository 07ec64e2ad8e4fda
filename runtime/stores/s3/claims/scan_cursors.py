"""Cursors of the listings of an index: the first minute that still has entries.

A store skips all delete markers of a folder for as long as it keeps them, so a listing that
begins at the first minute gets slower with every finished entity.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from runtime.stores.s3.keys import minute

_LATE = timedelta(minutes=2)
"""Most delay of an entry that is written after others of a later minute have been listed."""
_WHOLE = timedelta(minutes=5)
"""Interval of listings from the beginning, which find repaired entries."""


class ScanCursors:
    """The cursors of the shards of an index."""

    def __init__(self) -> None:
        self._cursors: dict[str, str] = {}
        self._began: dict[str, datetime] = {}
        self._oldest: dict[str, str] = {}

    def begin(self, shard: str, now: datetime) -> str | None:
        """Begin the listing of a shard; return its cursor, None for its beginning."""
        self._oldest.pop(shard, None)
        began = self._began.get(shard)
        if began is None or not timedelta(0) <= now - began < _WHOLE:
            self._began[shard] = now
            self._cursors.pop(shard, None)
        return self._cursors.get(shard)

    def note_entry(self, shard: str, at: str) -> None:
        """Note an entry of this minute."""
        self._oldest[shard] = min(at, self._oldest.get(shard, at))

    def finish(self, shard: str, now: datetime) -> None:
        """Move the cursor of a shard that was listed as far as it is due."""
        latest = minute(now - _LATE)
        self._cursors[shard] = min(latest, self._oldest.get(shard, latest))
