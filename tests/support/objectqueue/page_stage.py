"""A bucket with objects as workers write them, and a visitor, for tests of the page."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from playwright.async_api import Page, Request

from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy

Fields = dict[str, Any]
WORKER_ID = "worker-1"


class Visit(Protocol):
    """Opens the page and connects; with `alone` or options of a context, in a browser profile of its own."""

    def __call__(
        self,
        place: str = "",
        *,
        key: tuple[str, str] | None = None,
        address: str | None = None,
        page: str = ...,
        through: S3Proxy | None = None,
        connect: bool = True,
        alone: bool = False,
        **options: Any,
    ) -> Awaitable[Visitor]: ...


@dataclass
class Visitor:
    """A browser with the page open, and all that it has asked for."""

    page: Page
    requested: list[Request] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Errors of the code, and of its security policy. Answers that say no are none."""

    async def detach(self) -> None:
        """Record no more: another visitor has the tab, or the test is over."""

    def requests(self, method: str, part: str) -> list[str]:
        """The addresses of the requests so far that have that in them."""
        return [request.url for request in self.requested if request.method == method and part in request.url]

    def lists(self) -> list[str]:
        """The prefixes that were listed so far."""
        return [
            request.url.partition("prefix=")[2] for request in self.requested if "list-type=2" in request.url
        ]

    async def go(self, place: str) -> None:
        await self.page.evaluate("place => { location.hash = place }", place)

    async def refresh(self) -> None:
        await self.page.click("#refresh")
        await self.page.wait_for_selector("#refresh:not(.busy)")

    async def pause(self) -> None:
        """Stop the refreshes of the page, and let the current one end."""
        await self.page.click("#pause")
        await self.page.wait_for_selector("#refresh:not(.busy)")

    async def ids(self) -> list[str]:
        """The tasks in the list, from top to bottom."""
        script = "rows => rows.map(row => row.dataset.key)"
        found: list[str] = await self.page.eval_on_selector_all("#task-rows tr", script)
        return found

    async def act(self, word: str) -> None:
        """Press the button of an action and confirm."""
        await self.page.click(f'#detail-actions [data-action="{word}"]')
        await self.page.click("#confirm-yes")


class Stage:
    """A bucket, seen and changed with a plain S3 client."""

    def __init__(self, bucket: Bucket, prefix: str = "") -> None:
        self.bucket = bucket
        self.prefix = prefix
        self._numbers: Iterator[int] = itertools.count(1)

    @property
    def address(self) -> str:
        """The prefix of all addresses."""
        return f"{self.bucket.endpoint}/{self.bucket.name}"

    def task(self, shard: str = "3", **fields: Any) -> Fields:
        """A task as its object has it; fields of its state are set."""
        now = datetime.now(UTC) - timedelta(minutes=5) + timedelta(seconds=next(self._numbers))
        made: Fields = {
            "id": shard + str(uuid.uuid4())[1:],
            "schema_version": 1,
            "rev": 1,
            "task_type": "send_email",
            "shard": shard,
            "status": "Pending",
            "archived_from": None,
            "available_at": format_time(now),
            "lease_expires_at": None,
            "input": {"to": "ada@example.com"},
            "input_ref": None,
            "output": None,
            "output_ref": None,
            "progress": None,
            "timeout_seconds": 300,
            "max_retries": 3,
            "retry_count": 0,
            "retry_policy": {
                "initial_interval_ms": 1000,
                "max_interval_ms": 60000,
                "multiplier": 2.0,
                "jitter_percent": 0.25,
            },
            "created_at": format_time(now - timedelta(minutes=1)),
            "updated_at": format_time(now),
            "completed_at": None,
            "worker_id": None,
            "lease_id": None,
            "attempt": 0,
            "last_error": None,
            "idempotency_key": None,
        }
        return {**made, **_of_state(fields.get("status", "Pending"), now), **fields}

    def put(self, task: Fields, *, index: bool = True) -> Fields:
        """Write a task and its entry in an index, as a worker would."""
        self.write(f"tasks/{task['shard']}/{task['id']}.json", json.dumps(task))
        name, at = {"Pending": ("ready", "available_at"), "Running": ("leases", "lease_expires_at")}.get(
            task["status"], ("", "")
        )
        if index and name:
            self.write(
                f"{name}/{task['shard']}/{format_minute(task[at])}/{task['id']}",
                '{"attempt":0,"retry_count":0}',
            )
        return task

    def add(self, shard: str = "3", **fields: Any) -> Fields:
        """Create and write a task."""
        return self.put(self.task(shard, **fields))

    def update(self, task: Fields, **fields: Any) -> Fields:
        """Write the next version of a task."""
        updated = format_time(
            datetime.fromisoformat(task["updated_at"]) + timedelta(seconds=next(self._numbers))
        )
        return self.put({**task, "rev": task["rev"] + 1, "updated_at": updated, **fields})

    def add_with_history(self, **fields: Any) -> Fields:
        """A task that failed once, was tried again and completed: five versions."""
        first = self.add(**fields)
        claimed = {"status": "Running", "worker_id": WORKER_ID, **_lease(datetime.now(UTC))}
        free: Fields = {"worker_id": None, "lease_id": None, "lease_expires_at": None}
        second = self.update(first, attempt=1, **claimed)
        third = self.update(second, status="Pending", retry_count=1, last_error="no answer", **free)
        fourth = self.update(third, attempt=2, **{**claimed, "lease_id": str(uuid.uuid4())})
        done = format_time(datetime.now(UTC))
        return self.update(
            fourth,
            status="Completed",
            output={"sent": 1},
            completed_at=done,
            **{**free, "worker_id": WORKER_ID},
        )

    def worker(self, name: str, *, silent_s: float = 1.0, **fields: Any) -> None:
        """Write the object of a worker whose last heartbeat was some seconds ago."""
        now = datetime.now(UTC)
        made: Fields = {
            "worker_id": name,
            "schema_version": 1,
            "rev": 1,
            "status": "Active",
            "started_at": format_time(now - timedelta(hours=1)),
            "last_heartbeat": format_time(now - timedelta(seconds=silent_s)),
            "shards": list("0123456789abcdef"),
            "task_types": ["send_email"],
            "current_task": None,
            "current_tasks": [],
            "tasks_completed": 0,
            "tasks_failed": 0,
            "leases_lost": 0,
        }
        self.write(f"workers/{name}.json", json.dumps({**made, **fields}))

    def write(self, key: str, text: str) -> str:
        """Write an object; return its version."""
        return self.bucket.write(self.prefix + key, text.encode())

    def text(self, task: Fields) -> str:
        """The object of a task as it is now."""
        key = f"{self.prefix}tasks/{task['shard']}/{task['id']}.json"
        return self.bucket.read(key).decode()

    def read(self, task: Fields) -> Fields:
        found: Fields = json.loads(self.text(task))
        return found

    def versions(self, task: Fields) -> int:
        key = f"{self.prefix}tasks/{task['shard']}/{task['id']}.json"
        found = self.bucket.raw.list_object_versions(Bucket=self.bucket.name, Prefix=key)
        return len(found.get("Versions", ()))

    def keys(self, prefix: str) -> list[str]:
        return [key.removeprefix(self.prefix) for key in self.bucket.keys(self.prefix + prefix)]


def format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def format_minute(text: str) -> str:
    """The part of an index key that stands for a time."""
    return f"{int(datetime.fromisoformat(text).timestamp() // 60):010d}"


def format_soon(seconds: float) -> str:
    return format_time(datetime.now(UTC) + timedelta(seconds=seconds))


def _lease(now: datetime) -> Fields:
    return {"lease_id": str(uuid.uuid4()), "lease_expires_at": format_time(now + timedelta(seconds=300))}


def _of_state(state: str, now: datetime) -> Fields:
    done: Fields = {"worker_id": WORKER_ID, "attempt": 1, "completed_at": format_time(now)}
    failed: Fields = {**done, "attempt": 4, "retry_count": 3, "last_error": "it broke"}
    found: dict[str, Fields] = {
        "Running": {"worker_id": WORKER_ID, "attempt": 1, **_lease(datetime.now(UTC))},
        "Completed": {**done, "output": {"ok": True}},
        "Failed": failed,
        "Archived": {**failed, "archived_from": "Failed"},
    }
    return found.get(state, {})
