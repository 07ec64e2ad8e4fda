"""Where looks for something to take begin, with several of them under way at the same time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from runtime.stores.postgres.claims import BEGINNING, ClaimCursor


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def rows(*seconds: int) -> list[Any]:
    return [{"made": at(each)} for each in seconds]


def looking(last: int) -> ClaimCursor:
    """One that has just looked at all there is, and found something made then."""
    made = ClaimCursor("made")
    made.note_result(made.rewind(), rows(last))
    return made


async def test_the_next_look_begins_at_the_last_of_all() -> None:
    """Also where a look that got the earlier ones ends after the one that got the later ones."""
    look = looking(10)
    first, second = look.start(), look.start()
    look.note_result(second, rows(13, 14))
    look.note_result(first, rows(11, 12))
    assert look.start() == at(14)


async def test_what_a_look_back_has_found_is_gone_on_from() -> None:
    """Those that came back are taken before newer ones, whatever a look brings that was under way by then."""
    look = looking(10)
    under_way = look.start()
    look.note_result(look.rewind(), rows(2, 3))
    look.note_result(under_way, rows(11, 12))
    assert look.start() == at(3)
    look.note_result(at(3), rows(4, 5))
    assert look.start() == at(5)


async def test_a_look_that_finds_nothing_is_followed_by_one_at_all_there_is() -> None:
    look = looking(10)
    news = SimpleNamespace(there=False)
    look.note_claim = lambda: news.there
    look.note_result(look.start(), [])
    assert look.start() is BEGINNING
    news.there = True
    assert look.start() == at(10)
