"""Lines of listings that a process has seen, and need not look at again."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from datetime import datetime

from runtime.stores.s3.client.objects import ListedObject

_REMEMBERED = 100_000
_SPARE = 64
"""So many times that hold no longer may be kept before the others are sorted out."""


class SkipCache:
    """Lines that need not be looked at again while their ETags stay, some until a certain time."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, tuple[str, datetime | None]] = OrderedDict()
        self._times: list[tuple[datetime, str]] = []
        """A heap of the times and whose they are; one that has changed since stays until it comes up."""

    def add(self, line: ListedObject, until: datetime | None = None) -> None:
        """Remembers one."""
        self.note(line.key, line.etag, until)

    def note(self, key: str, etag: str, until: datetime | None = None, *, wakes: bool = True) -> None:
        """Remembers one that no listing has shown yet; `wakes` says whether its time is worth a look then."""
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
        """Whether one can be passed by."""
        etag, until = self._until.get(line.key, ("", None))
        return etag == line.etag and (until is None or now < until)

    def next_after(self, now: datetime) -> datetime | None:
        """When the first of those is worth a look that wait for a time."""
        while self._times:
            until, key = self._times[0]
            if until > now and self._waits(key, until):
                return until
            heapq.heappop(self._times)
        return None

    def _waits(self, key: str, until: datetime) -> bool:
        return self._until.get(key, ("", None))[1] == until
