"""Deployments on other engines: the same handlers, lifecycles and interfaces without Redis and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from generated.priority.system import SYSTEM
from tests.support.priority.stack import (
    BRISK,
    Queue,
    Servers,
    Stack,
    expect_refusal,
    expect_success,
    wait_until,
)

ENGINES = ("memory", "sqlite")
NO_SERVERS = Servers("", "", redis=Path())
"""There is nothing that a node could connect to."""


class NoServers(Stack):
    """Processes without servers around them."""

    def __init__(self, logs: Path, engine: str) -> None:
        super().__init__(NO_SERVERS, logs)
        self._engine, self._file = engine, logs / "tasks.db"

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        for node in self.nodes:
            node.discard()

    def begin_api(self) -> Queue:
        """An API that is ready, as its callers see it."""
        path = {"DATABASE_PATH": str(self._file)} if self._engine == "sqlite" else {}
        return self.queue(self.add("api", deployment=self._engine, intervals=BRISK, **path))


@pytest.fixture(scope="module", params=ENGINES)
def queue(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """A queue on each engine. Each test uses a capability of its own, so that it gets only its own tasks."""
    with NoServers(tmp_path_factory.mktemp(request.param), request.param) as stack:
        yield stack.begin_api()


def test_the_interfaces_are_those_of_the_system() -> None:
    own = SYSTEM.deployments["local"].nodes["api"]
    for engine in ENGINES:
        other = SYSTEM.deployments[engine].nodes["api"]
        assert (other.serves, other.http, other.port_variable) == (own.serves, own.http, own.port_variable)


def test_a_key_names_one_task(queue: Queue) -> None:
    body = {"task_type": "echo", "idempotency_key": "one", "required_capabilities": ["keys"]}
    first, second = queue.post(**body), queue.post(**body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["task_id"] == second.json()["task_id"]


def test_claims_go_by_priority_age_and_capability(queue: Queue) -> None:
    order = ("low", "high", "medium", "high")
    ids = [queue.submit(priority=each, required_capabilities=["order"]) for each in order]
    stranger, worker = queue.register("other"), queue.register("order", capacity=10)
    assert queue.poll(stranger, 1) == []
    claimed = [each["task_id"] for each in queue.poll(worker, 10)]
    assert claimed == [ids[1], ids[3], ids[2], ids[0]]


def test_a_lease_is_fenced(queue: Queue) -> None:
    """The first owner comes back after its task was given to another, and changes nothing."""
    queue.submit(required_capabilities=["fence"], max_retries=5)
    worker = queue.register("fence")
    first = queue.claim(worker)
    assert queue.fail(worker, first) == "queued"
    second = wait_until(lambda: queue.poll(worker, 1), "the backoff is over")[0]
    assert (first["attempt"], second["attempt"]) == (1, 2)
    expect_refusal(queue.report(worker, first, result={}), 409, "STALE_ATTEMPT")
    queue.complete(worker, second, {"done": True})
    assert queue.get(second["task_id"])["result"] == {"done": True}


def test_a_dead_letter_is_replayed(queue: Queue) -> None:
    worker = queue.register("dead")
    task = queue.make_dead_letter(worker, required_capabilities=["dead"])
    assert queue.status(task) == "dead_letter"
    expect_success(queue.admin.post(f"/api/v1/admin/dlq/{task}/replay"))
    again = wait_until(lambda: queue.poll(worker, 1), "it can be claimed again")[0]
    queue.complete(worker, again)
    assert queue.status(task) == "completed"


def test_a_cancelled_task_is_not_claimed(queue: Queue) -> None:
    task, worker = queue.submit(required_capabilities=["cancel"]), queue.register("cancel")
    expect_success(queue.cancel(task))
    assert queue.poll(worker, 1) == [] and queue.status(task) == "cancelled"


def test_accepted_tasks_outlive_the_process_in_a_file(tmp_path: Path) -> None:
    """Killed with tasks that wait and one that runs; its lease, and all of them, are there afterwards."""
    with NoServers(tmp_path, "sqlite") as stack:
        queue = stack.begin_api()
        ids = [queue.submit() for _ in range(5)]
        worker = queue.register()
        claimed = queue.claim(worker)
        stack.nodes[0].kill()
        queue = stack.queue(stack.nodes[0].start())
        queue.complete(worker, claimed)
        assert {queue.status(each) for each in ids} == {"completed", "queued"}
        assert queue.status(claimed["task_id"]) == "completed"
