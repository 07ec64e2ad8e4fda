"""Cursors of index listings, so that removed entries cost nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtime.stores.s3.claims.scan_cursors import ScanCursors
from runtime.stores.s3.keys import minute
from tests.support.eventually import eventually
from tests.support.objectqueue.crew import Crew
from tests.support.s3.proxy import S3Proxy

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_cursor_is_before_all_remaining_entries() -> None:
    """Before the oldest entry that was read, and some minutes before now in any case."""
    cursors = ScanCursors()
    assert cursors.begin("0", NOW) is None
    cursors.finish("0", NOW)
    assert cursors.begin("0", NOW) == minute(NOW - timedelta(minutes=2))
    for at in (minute(NOW), minute(NOW - timedelta(hours=1))):
        cursors.note_entry("0", at)
    cursors.finish("0", NOW)
    assert cursors.begin("0", NOW) == minute(NOW - timedelta(hours=1))
    assert cursors.begin("1", NOW) is None


def test_the_whole_index_is_listed_from_time_to_time() -> None:
    """Also after a clock was set back."""
    cursors = ScanCursors()
    for later in (timedelta(0), timedelta(minutes=5), timedelta(0)):
        assert cursors.begin("0", NOW + later) is None
        cursors.finish("0", NOW + later)
        assert cursors.begin("0", NOW + later) is not None


@pytest.mark.req("OQ-095")
async def test_listings_begin_at_the_cursor(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """The first one at the beginning, the others at a cursor; a task that comes later is found."""
    crew = proxied_crew
    async with crew.worker(QO_INDEX_MODE="index-only", QO_SHARDS="0"):
        await eventually(lambda: len(s3_proxy.asked("ListObjectsV2")) >= 3)
        key = await crew.submit("echo", 1, id="00000000-0000-4000-8000-000000000000")
        assert (await crew.wait_until_ended(key))["status"] == "Completed"
    first, *others = [
        each.query for each in s3_proxy.asked("ListObjectsV2") if "ready/0" in each.query["prefix"]
    ]
    assert "start-after" not in first
    assert {each["start-after"] <= f"ready/0/{minute(datetime.now(UTC))}" for each in others} == {True}
