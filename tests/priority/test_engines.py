"""Deployments on other engines: the same handlers, lifecycles and interfaces without Redis."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from generated.priority.system import SYSTEM
from tests.support.orchestrator.sql_session import Sql
from tests.support.postgres_clusters import ServiceDatabases
from tests.support.priority.stack import (
    BRISK,
    Node,
    Queue,
    Servers,
    Stack,
    expect_refusal,
    expect_success,
    wait_until,
)

ENGINES = ("memory", "postgres", "sqlite")
DURABLE = ("postgres", "sqlite")
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


class OnEngine(Stack):
    """Processes of the deployment of an engine, without a Redis; the database is that of their own role."""

    def __init__(self, logs: Path, engine: str, databases: ServiceDatabases) -> None:
        database = databases.make() if engine == "postgres" else ""
        super().__init__(Servers("", database, redis=Path()), logs)
        self._engine, self._file = engine, logs / "tasks.db"

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        for node in self.nodes:
            node.discard()

    def begin(self, name: str, **settings: str) -> Node:
        """A node that is ready, with all periodic work."""
        path = {"DATABASE_PATH": str(self._file)} if self._engine == "sqlite" else {}
        return self.add(name, deployment=self._engine, intervals=BRISK, **path, **settings)

    def begin_api(self, **settings: str) -> Queue:
        """An API that is ready, as its callers see it."""
        return self.queue(self.begin("api", **settings))


@pytest.fixture(scope="module", params=ENGINES)
def queue(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, databases: ServiceDatabases
) -> Iterator[Queue]:
    """A queue on each engine. Each test uses a capability of its own, so that it gets only its own tasks."""
    with OnEngine(tmp_path_factory.mktemp(request.param), request.param, databases) as stack:
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


@pytest.mark.parametrize("engine", ENGINES)
def test_tasks_rise_with_their_age(engine: str, tmp_path: Path, databases: ServiceDatabases) -> None:
    with OnEngine(tmp_path, engine, databases) as stack:
        queue = stack.begin_api(LOW_TO_MEDIUM_SECONDS="1", MEDIUM_TO_HIGH_SECONDS="1")
        task = queue.submit(priority="low")
        wait_until(lambda: queue.get(task)["effective_priority"] == "high", "it has waited for long")
        assert queue.get(task)["priority"] == "low"


def test_a_task_changes_hands_when_its_worker_is_lost(queue: Queue) -> None:
    """A worker that says nothing any more is dead, and what it ran is claimed by another."""
    task = queue.submit(required_capabilities=["lost"], timeout_seconds=2)
    first, second = queue.register("lost"), queue.register("lost")
    assert queue.claim(first)["task_id"] == task
    again = wait_until(lambda: queue.poll(second, 1), "the task is over its time")[0]
    assert (again["task_id"], again["attempt"]) == (task, 2)
    queue.complete(second, again)


@pytest.mark.parametrize("engine", DURABLE)
def test_accepted_tasks_outlive_the_process(engine: str, tmp_path: Path, databases: ServiceDatabases) -> None:
    """Killed with tasks that wait and one that runs; its lease, and all of them, are there afterwards."""
    with OnEngine(tmp_path, engine, databases) as stack:
        queue = stack.begin_api()
        ids = [queue.submit() for _ in range(5)]
        worker = queue.register()
        claimed = queue.claim(worker)
        stack.nodes[0].kill()
        queue = stack.queue(stack.nodes[0].start())
        queue.complete(worker, claimed)
        assert {queue.status(each) for each in ids} == {"completed", "queued"}
        assert queue.status(claimed["task_id"]) == "completed"


@pytest.mark.parametrize("engine", DURABLE)
def test_what_has_ended_is_forgotten(engine: str, tmp_path: Path, databases: ServiceDatabases) -> None:
    """After its time, with its history; what waits stays."""
    with OnEngine(tmp_path, engine, databases) as stack:
        queue = stack.begin_api(TASK_RETENTION_SECONDS="1")
        ended, waiting = queue.submit(), queue.submit()
        worker = queue.register()
        queue.complete(worker, queue.claim(worker))
        path = f"/api/v1/tasks/{ended}"
        wait_until(lambda: queue.client.get(path).status_code == 404, "it is forgotten")
        assert queue.status(waiting) == "queued"


def test_a_killed_worker_loses_no_task_in_a_database(tmp_path: Path, databases: ServiceDatabases) -> None:
    """It has the store itself. What it ran is run again by the one that follows, and each task ends once."""
    with OnEngine(tmp_path, "postgres", databases) as stack:
        queue = stack.begin_api(WORKER_DEAD_SECONDS="1")
        worker = stack.begin("worker")
        running = queue.submit("sleep", parameters={"seconds": 600}, max_retries=9)
        ids = [queue.submit(max_retries=9) for _ in range(20)]
        wait_until(lambda: queue.status(running) == "executing", "it has begun")
        lost = queue.get(running)["assigned_worker_id"]
        worker.kill()
        worker.start()
        wait_until(lambda: queue.get(running)["assigned_worker_id"] not in (None, lost), "it runs again")
        wait_until(lambda: {queue.status(each) for each in ids} == {"completed"}, "all others have ended")
        expect_success(queue.cancel(running))


def test_a_report_waits_for_whoever_has_the_row(tmp_path: Path, databases: ServiceDatabases) -> None:
    """A claim that comes too late for a task has its row until it ends; here a session at the shell does."""
    with OnEngine(tmp_path, "postgres", databases) as stack, Sql(stack.servers.database_url) as shell:
        queue = stack.begin_api()
        queue.submit()
        worker = queue.register()
        task = queue.claim(worker)
        shell.run("BEGIN; SELECT FROM tasks FOR UPDATE")
        with ThreadPoolExecutor(1) as pool, Sql(stack.servers.database_url) as other:
            report = pool.submit(queue.complete, worker, task)
            wait_until(lambda: report.done() or other.value(WAITING), "it waits for the row")
            assert not report.done()
            shell.run("ROLLBACK")
            report.result()
        assert queue.status(task["task_id"]) == "completed"


def test_two_processes_never_claim_the_same_task(tmp_path: Path, databases: ServiceDatabases) -> None:
    with OnEngine(tmp_path, "postgres", databases) as stack:
        queues = [stack.begin_api() for _ in range(2)]
        ids = [queues[0].submit() for _ in range(60)]
        workers = [(queue, queue.register(capacity=30)) for queue in queues for _ in range(2)]
        with ThreadPoolExecutor(len(workers)) as pool:
            runs = [pool.submit(claim_all, *each) for each in workers]
            claimed = [task for each in runs for task in each.result()]
        assert sorted(claimed) == sorted(ids)


def claim_all(queue: Queue, worker: str) -> list[str]:
    """Claim tasks, some at a time, until there are none."""
    claimed: list[str] = []
    while tasks := queue.poll(worker, 3):
        for each in tasks:
            queue.complete(worker, each)
        claimed += [each["task_id"] for each in tasks]
    return claimed
