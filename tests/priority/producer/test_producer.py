"""The producer on the Redis of the queue: the rules of the API, without an API in between."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from generated.priority import errors
from generated.priority.messages import HIGH
from handlers.priority.producer import Producer, task
from runtime.node.settings import SettingsError
from runtime.stores.redis.connection.client import RedisClient
from tests.support.priority.stack import Queue, Stack

ROOT = Path(__file__).parents[3]


def run_with_producer(stack: Stack, use: Callable[[Producer], Awaitable[Any]], **settings: str) -> Any:
    """Run a function with a producer."""
    servers = stack.servers
    environ = {"REDIS_URL": servers.redis_url, "DATABASE_URL": servers.database_url, **settings}

    async def run() -> Any:
        async with Producer(environ) as tasks:
            return await use(tasks)

    return asyncio.run(run())


def test_a_task_is_stored_as_by_the_api(queue: Queue, shared_stack: Stack) -> None:
    """All but its ids and times is the same, with all fields and without any."""
    of_its_own = {"id", "at"}
    moment = datetime(2999, 1, 1, tzinfo=UTC)
    body = {"priority": "high", "required_capabilities": ["gpu"], "timeout_seconds": 42, "max_retries": 7}
    answers = [
        queue.post(task_type="plain"),
        queue.post(task_type="full", parameters={"ü": 1}, run_at=moment.isoformat(), **body),
    ]
    by_api = [queue.read_hash(each.json()["task_id"]) for each in answers]
    by_producer = run_with_producer(
        shared_stack,
        lambda tasks: asyncio.gather(
            tasks.submit(task("plain")),
            tasks.submit(
                task(
                    "full",
                    {"ü": 1},
                    priority=HIGH,
                    required_capabilities=["gpu"],
                    timeout_seconds=42,
                    max_retries=7,
                    run_at=moment,
                )
            ),
        ),
    )
    for stored, task_id in zip(by_api, by_producer, strict=True):
        found = queue.read_hash(task_id)
        assert found.keys() == stored.keys()
        returned = {name for name in stored if name.rpartition("_")[2] not in of_its_own} | {
            "available_at"
        } & stored.keys()
        assert {name: found[name] for name in returned} == {name: stored[name] for name in returned}
        assert found["task_id"] == task_id
    assert "available_at" in by_api[1]
    assert [queue.get(each)["status"] for each in by_producer] == ["queued", "queued"]


def test_concurrent_tasks_are_batched(
    queue: Queue, shared_stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is sent at once, and all others in one script after it."""
    sizes: list[int] = []
    run = RedisClient.run

    def count_scripts(self: RedisClient, commands: Any, **more: Any) -> Any:
        sizes.extend(len(each) for each in commands if each[0] == "EVALSHA")
        return run(self, commands, **more)

    monkeypatch.setattr(RedisClient, "run", count_scripts)
    found = run_with_producer(
        shared_stack, lambda tasks: asyncio.gather(*(tasks.submit(task("t", {"n": n})) for n in range(40)))
    )
    assert len({*found}) == 40
    assert len(sizes) == 2
    assert sizes[1] > 30 * sizes[0] / 2
    assert queue.redis.zcard("queue:medium") == 40


def test_the_rules_of_the_api_apply(queue: Queue, shared_stack: Stack) -> None:
    """A task that it would refuse is refused before Redis gets it, and fails no other of its batch."""
    first, refused, last = run_with_producer(
        shared_stack,
        lambda tasks: asyncio.gather(
            *(tasks.submit(task(name)) for name in ("a", "", "b")), return_exceptions=True
        ),
    )
    assert isinstance(refused, errors.ValidationError)
    assert "task_type" in str(refused)
    assert queue.redis.zcard("queue:medium") == 2
    assert {queue.get(each)["payload"]["task_type"] for each in (first, last)} == {"a", "b"}


def test_a_known_key_returns_its_task(queue: Queue, shared_stack: Stack) -> None:
    """It is the same for every submitter; another task under it is refused."""
    first = queue.post(task_type="t", idempotency_key="one").json()["task_id"]
    found = run_with_producer(shared_stack, lambda tasks: tasks.submit(task("t", idempotency_key="one")))
    assert found == first
    with pytest.raises(errors.IdempotencyMismatch):
        run_with_producer(shared_stack, lambda tasks: tasks.submit(task("other", idempotency_key="one")))


def test_many_are_answered_one_by_one(queue: Queue, shared_stack: Stack) -> None:
    """In their order, and those beyond the limit are refused."""
    answers = run_with_producer(
        shared_stack, lambda tasks: tasks.submit_all([task("t"), task("t"), task("t")]), MAX_QUEUE_DEPTH="2"
    )
    assert [each.queue_position for each in answers[:2]] == [1, 2]
    assert answers[2].HasField("refused")
    with pytest.raises(errors.QueueFull):
        run_with_producer(shared_stack, lambda tasks: tasks.submit(task("t")), MAX_QUEUE_DEPTH="2")
    assert queue.redis.zcard("queue:medium") == 2


def test_it_needs_the_variables_of_the_api() -> None:
    """Without servers the error names the variables that are missing."""
    with pytest.raises(SettingsError, match="REDIS_URL"):
        Producer({})


@pytest.mark.parametrize(
    "parameters",
    [
        {"ü": [1, 2.5, True], "deep": {"list": ["x"]}},
        {"nothing": None},
        {"large": 1 << 70},
        {1: "a key that is no text", None: 2},
    ],
)
def test_parameters_are_any_json(parameters: dict[Any, Any]) -> None:
    assert task("t", parameters).parameters == json.dumps(
        parameters, ensure_ascii=False, separators=(",", ":")
    )


def test_not_a_number_is_refused() -> None:
    """The rules of the request refuse it, so it must not become null before."""
    assert task("t", {"n": float("nan")}).parameters == '{"n":NaN}'


def test_values_without_a_json_form_are_refused() -> None:
    for odd in (object(), datetime(2999, 1, 1, tzinfo=UTC)):
        with pytest.raises(TypeError):
            task("t", {"odd": odd})


def test_the_snippet_of_the_page_runs(queue: Queue, shared_stack: Stack, tmp_path: Path) -> None:
    """Word for word, with its imports, in a program that has nothing else."""
    page = (ROOT / "docs/how-to/use-priority.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (snippet,) = [each for each in blocks if "async with Producer() as tasks" in each]
    imports, body = snippet.split("\n\n", 1)
    lines = ["import asyncio", imports, "async def main() -> None:", indent(body + "print(task_id)", "    ")]
    program = tmp_path / "program.py"
    program.write_text("\n".join([*lines, "asyncio.run(main())"]))
    servers = shared_stack.servers
    found = subprocess.run(
        [sys.executable, program],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "REDIS_URL": servers.redis_url,
            "DATABASE_URL": servers.database_url,
        },
    )
    assert found.returncode == 0, found.stderr
    task_id = found.stdout.split()[-1]
    stored = queue.read_hash(task_id)
    assert (stored["task_type"], stored["priority"], stored["status"]) == ("send_email", "high", "queued")
