"""Claim cursor: where the next claim begins to look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

EVER = datetime(1, 1, 1, tzinfo=UTC)
_LOOK_BACK_S = 1.0
"""How often at least those are looked for that are older than the last one taken."""


class ClaimCursor:
    """Looks go on from where the last were taken, and every so often from the very beginning.

    What was taken leaves its traces in the index until it is vacuumed, which a forgotten transaction can
    hold up for hours. Passing all of them on every look would take longer and longer. Where nothing is
    expected, one look at all of it is enough.
    """

    def __init__(self, oldest_by: str) -> None:
        self._oldest_by = oldest_by
        self._oldest, self._looked_back, self._has_found = EVER, 0.0, False
        self.owes_back = True
        """Whether something may have come back since the last look at all there is."""
        self.looked: Callable[[], bool] = lambda: True
        """Called whenever a look begins; whether there was news since the last."""

    def start(self) -> datetime:
        """Begins a look: from here on."""
        now, is_news = asyncio.get_running_loop().time(), self.looked()
        self.owes_back |= is_news
        if now - self._looked_back > _LOOK_BACK_S or not (is_news or self._has_found):
            return self.back()
        return self._oldest

    def back(self) -> datetime:
        """Begins a look at all there is."""
        self._looked_back, self.owes_back = asyncio.get_running_loop().time(), False
        return EVER

    def ended(self, start: datetime, found: Sequence[Any]) -> None:
        """Remembers what a look has found that began there.

        Another look may have ended meanwhile. If it went back and found something, the next goes on from
        there, else from the last of all.
        """
        self._has_found = bool(found)
        if found:
            last: datetime = max(row[self._oldest_by] for row in found)
            if start is EVER:
                self._oldest = last
            elif self._oldest >= start:
                self._oldest = max(self._oldest, last)
