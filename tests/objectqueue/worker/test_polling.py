"""How a worker polls: where, in which order, how much at a time and how often."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtime.world import RealWorld
from tests.support.eventually import eventually
from tests.support.objectqueue.crew import Crew, Hurried
from tests.support.s3.proxy import S3Proxy
from tests.support.s3.requests import Asked

LIST = "ListObjectsV2"


def list_requests(proxy: S3Proxy, prefix: str) -> list[Asked]:
    return [each for each in proxy.asked(LIST) if each.query.get("prefix", "").startswith(prefix)]


def format_minute(ahead: int = 0) -> str:
    return f"{int(time.time()) // 60 + ahead:010d}"


@pytest.mark.req("OQ-067", "OQ-068", "OQ-069", "OQ-070", "OQ-102", "OQ-207", "OQ-208", "OQ-206")
@pytest.mark.parametrize("mode", ["index-only", "hybrid", "log-scan"])
async def test_the_three_modes(proxied_crew: Crew, s3_proxy: S3Proxy, mode: str) -> None:
    """Tasks are run in each; the index, the tasks or both are listed, in pages of the configured sizes."""
    crew = proxied_crew
    keys = await crew.submit_all("echo", 3, 1)
    s3_proxy.forget()
    kinds = {"index-only": {"ready"}, "log-scan": {"tasks"}}.get(mode, {"ready", "tasks"})
    async with crew.worker(QO_INDEX_MODE=mode, QO_READY_PAGE_SIZE="7", QO_LOG_SCAN_PAGE_SIZE="5"):
        for key in keys:
            assert (await crew.wait_until_ended(key))["status"] == "Completed"
        await eventually(
            lambda: len(s3_proxy.asked(LIST)) > 6 and all(list_requests(s3_proxy, each) for each in kinds)
        )
    ready, tasks = list_requests(s3_proxy, "ready/"), list_requests(s3_proxy, "tasks/")
    assert (bool(ready), bool(tasks)) == ("ready" in kinds, "tasks" in kinds)
    assert {each.query["max-keys"] for each in ready} <= {"7"}
    assert {each.query["max-keys"] for each in tasks} <= {"5"}


@pytest.mark.req("OQ-102", "OQ-207", "OQ-208")
async def test_the_default_page_sizes(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """A hundred entries of the index, fifty tasks."""
    async with proxied_crew.worker():
        await eventually(lambda: list_requests(s3_proxy, "ready/") and list_requests(s3_proxy, "tasks/"))
    assert {each.query["max-keys"] for each in list_requests(s3_proxy, "ready/")} == {"100"}
    assert {each.query["max-keys"] for each in list_requests(s3_proxy, "tasks/")} == {"50"}


@pytest.mark.req("OQ-070", "OQ-059", "OQ-090")
@pytest.mark.parametrize("mode", ["hybrid", "log-scan"])
async def test_a_task_without_an_entry_is_found(crew: Crew, mode: str) -> None:
    """As after a submit that was interrupted; the index is empty."""
    key = await crew.submit("echo", 1)
    for each in crew.bucket.keys("ready/"):
        crew.bucket.raw.delete_object(Bucket=crew.bucket.name, Key=each)
    async with crew.worker(QO_INDEX_MODE=mode):
        assert (await crew.wait_until_ended(key))["status"] == "Completed"


@pytest.mark.req("OQ-095", "OQ-031", "OQ-061")
async def test_tasks_that_are_not_due_are_not_read(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """Entries of later minutes are skipped; one of this minute stays, and is run in time."""
    crew = proxied_crew
    soon = datetime.now(UTC) + timedelta(seconds=2.5)
    later = await crew.submit("echo", 1, available_at=datetime.now(UTC) + timedelta(hours=1))
    key = await crew.submit("echo", 1, available_at=soon)
    s3_proxy.forget()
    async with crew.worker(QO_INDEX_MODE="index-only", QO_MAX_CLOCK_SKEW_MS="0"):
        hinted = crew.hints("ready")
        assert key in hinted or datetime.now(UTC) > soon
        task = await crew.wait_until_ended(key)
    assert datetime.fromisoformat(task["completed_at"]) >= soon
    assert s3_proxy.asked("GetObject", f"tasks/{later[0]}/{later}") == []
    assert crew.hints("ready") == [later]


@pytest.mark.req("OQ-096", "OQ-106", "OQ-094")
async def test_the_requests_of_a_task(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """A list, one read of the task, a conditional write, and another one at the end."""
    crew = proxied_crew
    key = await crew.submit("echo", 1)
    s3_proxy.forget()
    async with crew.worker(QO_INDEX_MODE="index-only"):
        await crew.wait_until_ended(key)
        await eventually(lambda: crew.hints("leases") == crew.hints("ready") == [])
    kinds = [each.kind for each in s3_proxy.asked(key=f"tasks/{key[0]}/{key}")]
    # A worker that had listed it before may read it once more.
    assert kinds[:2] == ["GetObject", "PutObject"]
    assert [each for each in kinds if each != "GetObject"] == ["PutObject", "PutObject"]
    writes = s3_proxy.asked("PutObject", f"tasks/{key[0]}/{key}")
    assert all("if-match" in each.headers for each in writes)
    assert s3_proxy.asked("DeleteObject", "tasks/") == []
    assert s3_proxy.asked("PutObject", "workers/"), "it has shown itself, too"


@pytest.mark.req("OQ-097", "OQ-060", "OQ-062")
async def test_stale_entries_are_removed(crew: Crew) -> None:
    """Those of a task that has ended, and of one that never existed."""
    completed = await crew.submit("echo", 1)
    async with crew.worker() as works:
        await crew.wait_until_ended(completed)
        ghost = f"{completed[0]}0000000-0000-4000-8000-000000000000"
        for key in (completed, ghost):
            crew.put_object(f"ready/{key[0]}/{format_minute(-1)}/{key}", '{"attempt":0,"retry_count":0}')
        await eventually(lambda: crew.hints("ready") == [])
        assert works.events("background_fault") == []
    assert [each["status"] for each in crew.versions(completed)] == ["Pending", "Running", "Completed"]


@pytest.mark.req("OQ-098", "OQ-099", "OQ-259")
async def test_pauses_grow_while_there_are_no_tasks(crew: Crew) -> None:
    """From a tenth of a second, doubled each time; after a task from the beginning."""
    world, expected = Hurried(), [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]

    def list_pauses() -> list[float]:
        return [each for each in world.slept if each in expected]

    async with crew.worker(world=world, QO_INDEX_MODE="index-only", QO_SHARDS="0"):
        await eventually(lambda: len(list_pauses()) > len(expected))
        assert list_pauses()[: len(expected)] == expected
        before = len(list_pauses())
        key = await crew.submit("echo", 1, id="00000000-0000-4000-8000-000000000000")
        await crew.wait_until_ended(key)
        await eventually(lambda: expected[0] in list_pauses()[before:])


@pytest.mark.req("OQ-100", "OQ-101", "OQ-021")
async def test_no_task_starves_behind_unclaimable_ones(crew: Crew) -> None:
    """Forty tasks that this worker has no handler for come first, five to a page; the last one is run."""
    shard = "7"
    for number in range(40):
        await crew.submit("unknown", id=f"{shard}{number:07d}-0000-4000-8000-000000000000")
    good = await crew.submit("echo", 1, id=f"{shard}fffffff-0000-4000-8000-000000000000")
    async with crew.worker(QO_INDEX_MODE="index-only", QO_READY_PAGE_SIZE="5"):
        assert (await crew.wait_until_ended(good))["status"] == "Completed"


@pytest.mark.req("OQ-104", "OQ-057")
async def test_an_object_that_is_no_task_is_skipped(crew: Crew) -> None:
    """It is logged and stays as it is; the tasks around it are run."""
    shard = "5"
    wrong = f"{shard}0000000-0000-4000-8000-000000000000"
    crew.put_object(f"tasks/{shard}/{wrong}.json", "no { JSON")
    crew.put_object(f"ready/{shard}/{format_minute()}/{wrong}", "{}")
    good = await crew.submit("echo", 1, id=f"{shard}fffffff-0000-4000-8000-000000000000")
    async with crew.worker() as works:
        assert (await crew.wait_until_ended(good))["status"] == "Completed"
        await eventually(lambda: _has_logged(works, wrong))
    body = crew.bucket.raw.get_object(Bucket=crew.bucket.name, Key=f"tasks/{shard}/{wrong}.json")["Body"]
    assert body.read() == b"no { JSON"


@pytest.mark.req("OQ-073", "OQ-074")
async def test_a_worker_reads_its_shards_only(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """It reads nothing of another shard; one without a limit runs the rest."""
    crew = proxied_crew
    ids = [f"{shard}0000000-0000-4000-8000-000000000000" for shard in "0123456789abcdef"]
    for each in ids:
        await crew.submit("echo", 1, id=each)
    s3_proxy.forget()
    async with crew.worker(QO_SHARDS="0,f"):
        await crew.wait_until_ended(ids[0])
        await crew.wait_until_ended(ids[-1])
    touched = {each.key.split("/")[1] for each in s3_proxy.asked(key="^(tasks|ready|leases)/")}
    assert touched == {"0", "f"}
    assert {
        each.query["prefix"].split("/")[1] for each in s3_proxy.asked(LIST, "^$") if "/" in read_prefix(each)
    } <= {
        "0",
        "f",
    }
    async with crew.worker(QO_CONCURRENCY="4"):
        for each in ids:
            assert (await crew.wait_until_ended(each))["status"] == "Completed"


def read_prefix(request: Asked) -> str:
    return request.query.get("prefix", "").strip("/")


def _has_logged(works: Any, key: str) -> bool:
    return any(key in line for line in works.text().splitlines())


class Endless(RealWorld):
    """A world in which no pause ever ends by itself; they are recorded."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.Event().wait()


async def test_a_pause_ends_with_the_worker(crew: Crew) -> None:
    """A worker stops at once while it pauses, however long the pause is."""
    world = Endless()
    async with asyncio.timeout(90), crew.worker(world=world):
        await eventually(lambda: 0.1 in world.slept)
