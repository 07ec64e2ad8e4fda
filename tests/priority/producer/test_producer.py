"""A producer that shares the Redis of the queue: the rules of the API, and no API in between."""

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
from runtime.stores.redis.connection.server import Server
from tests.support.priority.stack import Queue, Stack

ROOT = Path(__file__).parents[3]


def producing(stack: Stack, use: Callable[[Producer], Awaitable[Any]], **settings: str) -> Any:
    """Does something with a producer."""
    servers = stack.servers
    environ = {"REDIS_URL": servers.redis_url, "DATABASE_URL": servers.database_url, **settings}

    async def run() -> Any:
        async with Producer(environ) as tasks:
            return await use(tasks)

    return asyncio.run(run())


def test_a_task_is_kept_as_the_api_keeps_it(queue: Queue, shared: Stack) -> None:
    """All but its ids and times is the same, whatever is given and whatever is not."""
    of_its_own = {"id", "at"}
    moment = datetime(2999, 1, 1, tzinfo=UTC)
    body = {"priority": "high", "required_capabilities": ["gpu"], "timeout_seconds": 42, "max_retries": 7}
    answers = [
        queue.post(task_type="plain"),
        queue.post(task_type="full", parameters={"ü": 1}, run_at=moment.isoformat(), **body),
    ]
    by_api = [queue.hash(each.json()["task_id"]) for each in answers]
    by_producer = producing(
        shared,
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
    for kept, task_id in zip(by_api, by_producer, strict=True):
        found = queue.hash(task_id)
        assert found.keys() == kept.keys()
        told = {name for name in kept if name.rpartition("_")[2] not in of_its_own} | {
            "available_at"
        } & kept.keys()
        assert {name: found[name] for name in told} == {name: kept[name] for name in told}
        assert found["task_id"] == task_id
    assert "available_at" in by_api[1]
    assert [queue.get(each)["status"] for each in by_producer] == ["queued", "queued"]


def test_tasks_of_the_same_moment_go_together(
    queue: Queue, shared: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first goes at once, and all others in one script after it."""
    sizes: list[int] = []
    run = Server.run

    def counted(self: Server, commands: Any, **more: Any) -> Any:
        sizes.extend(len(each) for each in commands if each[0] == "EVALSHA")
        return run(self, commands, **more)

    monkeypatch.setattr(Server, "run", counted)
    found = producing(
        shared, lambda tasks: asyncio.gather(*(tasks.submit(task("t", {"n": n})) for n in range(40)))
    )
    assert len({*found}) == 40
    assert len(sizes) == 2
    assert sizes[1] > 30 * sizes[0] / 2
    assert queue.redis.zcard("queue:medium") == 40


def test_the_guard_of_the_api_is_asked(queue: Queue, shared: Stack) -> None:
    """A task that it would refuse is refused before Redis hears of it, and takes no other along."""
    first, refused, last = producing(
        shared,
        lambda tasks: asyncio.gather(
            *(tasks.submit(task(name)) for name in ("a", "", "b")), return_exceptions=True
        ),
    )
    assert isinstance(refused, errors.ValidationError)
    assert "task_type" in str(refused)
    assert queue.redis.zcard("queue:medium") == 2
    assert {queue.get(each)["payload"]["task_type"] for each in (first, last)} == {"a", "b"}


def test_a_known_key_has_its_task_already(queue: Queue, shared: Stack) -> None:
    """It is the same whoever submitted it first; another task under it is refused."""
    known = queue.post(task_type="t", idempotency_key="one").json()["task_id"]
    found = producing(shared, lambda tasks: tasks.submit(task("t", idempotency_key="one")))
    assert found == known
    with pytest.raises(errors.IdempotencyMismatch):
        producing(shared, lambda tasks: tasks.submit(task("other", idempotency_key="one")))


def test_many_are_answered_each_by_itself(queue: Queue, shared: Stack) -> None:
    """In their order, and those that there is no room for are told so."""
    answers = producing(
        shared, lambda tasks: tasks.submit_all([task("t"), task("t"), task("t")]), MAX_QUEUE_DEPTH="2"
    )
    assert [each.queue_position for each in answers[:2]] == [1, 2]
    assert answers[2].HasField("refused")
    with pytest.raises(errors.QueueFull):
        producing(shared, lambda tasks: tasks.submit(task("t")), MAX_QUEUE_DEPTH="2")
    assert queue.redis.zcard("queue:medium") == 2


def test_it_needs_the_variables_of_the_api() -> None:
    """Whoever has no server is told which variables say where they are."""
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
def test_parameters_are_json_whatever_is_in_them(parameters: dict[Any, Any]) -> None:
    assert task("t", parameters).parameters == json.dumps(
        parameters, ensure_ascii=False, separators=(",", ":")
    )


def test_what_is_no_number_is_not_taken_for_nothing() -> None:
    """The rules of the request refuse it, and so they have to see it."""
    assert task("t", {"n": float("nan")}).parameters == '{"n":NaN}'


def test_what_json_has_no_form_for_is_refused() -> None:
    for odd in (object(), datetime(2999, 1, 1, tzinfo=UTC)):
        with pytest.raises(TypeError):
            task("t", {"odd": odd})


def test_the_snippet_of_the_page_runs(queue: Queue, shared: Stack, tmp_path: Path) -> None:
    """Word for word, with what it imports, in a program that has nothing else."""
    page = (ROOT / "docs/how-to/use-priority.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (snippet,) = [each for each in blocks if "async with Producer() as tasks" in each]
    imports, body = snippet.split("\n\n", 1)
    lines = ["import asyncio", imports, "async def main() -> None:", indent(body + "print(task_id)", "    ")]
    program = tmp_path / "program.py"
    program.write_text("\n".join([*lines, "asyncio.run(main())"]))
    servers = shared.servers
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
    kept = queue.hash(task_id)
    assert (kept["task_type"], kept["priority"], kept["status"]) == ("send_email", "high", "queued")
