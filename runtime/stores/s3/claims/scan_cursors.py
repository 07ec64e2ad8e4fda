"""Where the listing of an index may begin: before that minute nothing is left.

A store steps over all that was removed from a folder as long as it keeps what that was, so a listing that
begins at the first minute costs the more, the more has been done.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from runtime.stores.s3.keys import minute

_LATE = timedelta(minutes=2)
"""By so much an entry may be late: written after others of a later minute have been listed."""
_WHOLE = timedelta(minutes=5)
"""After so long an index is listed from its beginning, for what was repaired meanwhile."""


class ScanCursors:
    """The first minutes of the parts of an index that are worth a look."""

    def __init__(self) -> None:
        self._cursors: dict[str, str] = {}
        self._began: dict[str, datetime] = {}
        self._oldest: dict[str, str] = {}

    def begin(self, part: str, now: datetime) -> str | None:
        """Where to begin with a part; None stands for its beginning."""
        self._oldest.pop(part, None)
        began = self._began.get(part)
        if began is None or not timedelta(0) <= now - began < _WHOLE:
            self._began[part] = now
            self._cursors.pop(part, None)
        return self._cursors.get(part)

    def met(self, part: str, at: str) -> None:
        """There is an entry of this minute."""
        self._oldest[part] = min(at, self._oldest.get(part, at))

    def over(self, part: str, now: datetime) -> None:
        """A part has been listed as far as it is due."""
        latest = minute(now - _LATE)
        self._cursors[part] = min(latest, self._oldest.get(part, latest))
