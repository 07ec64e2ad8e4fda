"""Cache of the lines of listings that need not be read again."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from datetime import datetime

from runtime.stores.s3.client.objects import ListedObject

_REMEMBERED = 100_000
_SPARE = 64
"""Most stale times in the heap beside the valid ones, before it is rebuilt."""


class SkipCache:
    """Lines to skip while their ETags stay the same, some until a certain time."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, tuple[str, datetime | None]] = OrderedDict()
        self._times: list[tuple[datetime, str]] = []
        """A heap of times and keys; a stale pair stays until it is on top."""

    def add(self, line: ListedObject, until: datetime | None = None) -> None:
        """Skip a line."""
        self.note(line.key, line.etag, until)

    def note(self, key: str, etag: str, until: datetime | None = None, *, wakes: bool = True) -> None:
        """Skip an object by its key; `wakes` is whether `next_after` counts its time."""
        if wakes and until is not None and not self._waits(key, until):
            heapq.heappush(self._times, (until, key))
        self._until[key] = (etag, until)
        self._until.move_to_end(key)
        while len(self._until) > _REMEMBERED:
            self._until.popitem(last=False)
        if len(self._times) > 2 * len(self._until) + _SPARE:
            self._times = [(until, key) for key, (_, until) in self._until.items() if until is not None]
            heapq.heapify(self._times)

    def has(self, line: ListedObject, now: datetime) -> bool:
        """Whether a line is skipped."""
        etag, until = self._until.get(line.key, ("", None))
        return etag == line.etag and (until is None or now < until)

    def next_after(self, now: datetime) -> datetime | None:
        """Return the first time after `now` at which a skipped object becomes relevant."""
        while self._times:
            until, key = self._times[0]
            if until > now and self._waits(key, until):
                return until
            heapq.heappop(self._times)
        return None

    def _waits(self, key: str, until: datetime) -> bool:
        return self._until.get(key, ("", None))[1] == until
