"""The processes of a priority queue on a real Redis and a real PostgreSQL, and how tests talk to them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from redis import Redis

from generated.priority.system import SYSTEM
from runtime.stores.redis.given import unpacked
from tests.support.orchestrator import stack
from tests.support.plain_http import NO_TLS

wait_until = stack.wait_until
PATIENCE = stack.PATIENCE
SERVE = stack.SERVE
ROLES = ("client", "worker", "admin")
TOKENS = {role: f"{role}-secret" for role in ROLES}
ACCEPTED = ",".join(f"{role}={hashlib.sha256(token.encode()).hexdigest()}" for role, token in TOKENS.items())

CALM = {
    "PROMOTION_INTERVAL_SECONDS": "3600",
    "WORKER_CHECK_INTERVAL_SECONDS": "3600",
    "TIMEOUT_CHECK_INTERVAL_SECONDS": "3600",
    "DELAY_CHECK_INTERVAL_SECONDS": "3600",
    "DLQ_SWEEP_INTERVAL_SECONDS": "3600",
}
"""Settings under which nothing happens by itself."""

BRISK = {
    "PROMOTION_INTERVAL_SECONDS": "0.1",
    "WORKER_CHECK_INTERVAL_SECONDS": "0.1",
    "TIMEOUT_CHECK_INTERVAL_SECONDS": "0.1",
    "DELAY_CHECK_INTERVAL_SECONDS": "0.1",
    "DLQ_SWEEP_INTERVAL_SECONDS": "0.1",
    "HEARTBEAT_INTERVAL_SECONDS": "0.2",
    "POLL_WAIT_MS": "500",
    "SHUTDOWN_GRACE_SECONDS": "3",
}
"""Settings under which everything that is due happens soon."""


class Node(stack.Node):
    """One process of the queue."""

    system = SYSTEM

    def __init__(
        self, name: str, servers: Servers, logs: Path, settings: Mapping[str, str], **more: Any
    ) -> None:
        given = {"REDIS_URL": servers.redis_url, "ACCEPTED_TOKENS": ACCEPTED, **settings}
        super().__init__(name, servers.database_url, logs, given, **more)


class Servers:
    """Where the Redis and the PostgreSQL of some processes are."""

    def __init__(self, redis_url: str, database_url: str, redis: Any = None) -> None:
        self.redis_url = redis_url
        self.database_url = database_url
        self.redis: Any = redis or Redis.from_url(redis_url, decode_responses=True)


class Stack:
    """One Redis and one PostgreSQL with processes around them."""

    def __init__(self, servers: Servers, logs: Path) -> None:
        self.servers = servers
        self.redis = servers.redis
        self._logs = logs
        self.nodes: list[Node] = []
        self._clients: list[httpx.Client] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close()
        for node in self.nodes:
            node.discard()
        self.redis.close()

    def node(
        self,
        name: str,
        /,
        *,
        deployment: str = "local",
        program: str = SERVE,
        pace: Mapping[str, str] = CALM,
        **settings: str,
    ) -> Node:
        """A node at some pace, not started yet."""
        table = SYSTEM.deployments[deployment].nodes[name]
        short = {key: value for key, value in pace.items() if key in table.variables}
        made = Node(
            name, self.servers, self._logs, {**short, **settings}, deployment=deployment, program=program
        )
        self.nodes.append(made)
        return made

    def add(self, name: str, /, **more: Any) -> Node:
        """A node that is ready."""
        return self.node(name, **more).start()

    def queue(self, node: Node | None = None) -> Queue:
        """The queue as its callers see it, at one of the APIs."""
        api = node or next(each for each in self.nodes if each.name == "api")
        clients = {role: self.http(api, role) for role in ROLES}
        return Queue(clients, self.redis)

    def http(self, node: Node, role: str) -> httpx.Client:
        """Somebody who proves to be of a role; nobody in particular if it is empty."""
        headers = {"authorization": f"Bearer {TOKENS[role]}"} if role else {}
        made = httpx.Client(base_url=node.url, headers=headers, timeout=PATIENCE, verify=NO_TLS)
        self._clients.append(made)
        return made


class Queue:
    """The REST API in the hands of a client, a worker and an administrator."""

    def __init__(self, clients: Mapping[str, httpx.Client], redis: Any) -> None:
        self.client, self.worker, self.admin = (clients[role] for role in ROLES)
        self.redis = redis

    def post(self, headers: Mapping[str, str] | None = None, /, **body: Any) -> httpx.Response:
        """Submits in any shape, and returns the whole answer."""
        return self.client.post("/api/v1/tasks", json=body, headers=headers)

    def submit(self, task_type: str = "echo", **body: Any) -> str:
        """Submits a task; its id."""
        answer = self.post(task_type=task_type, **body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["task_id"])

    def get(self, task_id: str) -> dict[str, Any]:
        """All that is told of a task."""
        return told(self.client.get(f"/api/v1/tasks/{task_id}"))

    def status(self, task_id: str) -> str:
        return str(self.get(task_id)["status"])

    def cancel(self, task_id: str) -> httpx.Response:
        return self.client.delete(f"/api/v1/tasks/{task_id}")

    def stats(self) -> dict[str, Any]:
        return told(self.client.get("/api/v1/queue/stats"))

    def register(self, *capabilities: str, **body: Any) -> str:
        """Registers a worker; its id."""
        answer = told(
            self.worker.post("/internal/workers/register", json={"capabilities": capabilities, **body})
        )
        return str(answer["worker_id"])

    def ask(self, worker_id: str, what: str, **body: Any) -> httpx.Response:
        """Anything that a worker may say."""
        return self.worker.post(f"/internal/workers/{worker_id}/{what}", json=body)

    def poll(self, worker_id: str, most: int = 1, **body: Any) -> list[dict[str, Any]]:
        """Tasks for a worker."""
        body.setdefault("capabilities", [])
        found = told(self.ask(worker_id, "poll", available_capacity=most, **body))
        return list(found["tasks"])

    def claim(self, worker_id: str, **body: Any) -> dict[str, Any]:
        """The one task that a worker gets."""
        (task,) = self.poll(worker_id, 1, **body)
        return task

    def report(
        self, worker_id: str, task: Mapping[str, Any], status: str = "completed", **body: Any
    ) -> httpx.Response:
        """Says how a run ended."""
        said = {"task_id": task["task_id"], "attempt": task["attempt"], "status": status, **body}
        return self.ask(worker_id, "result", **said)

    def complete(self, worker_id: str, task: Mapping[str, Any], result: object = None) -> None:
        assert told(self.report(worker_id, task, result=result))["status"] == "completed"

    def fail(
        self, worker_id: str, task: Mapping[str, Any], *, retriable: bool = True, message: str = "no"
    ) -> str:
        """Says that a run failed; where the task is then."""
        error = {"message": message, "retriable": retriable}
        return str(told(self.report(worker_id, task, "failed", error=error))["status"])

    def beat(self, worker_id: str, load: int = 0, status: str = "active", **body: Any) -> httpx.Response:
        return self.ask(worker_id, "heartbeat", current_load=load, status=status, **body)

    def bury(self, worker_id: str, **body: Any) -> str:
        """A task that became a dead letter."""
        task_id = self.submit(max_retries=0, **body)
        assert self.fail(worker_id, self.claim(worker_id)) == "dead_letter"
        return task_id

    def silence(self, worker_id: str, seconds: float) -> None:
        """Lets a worker not have been heard of for so long."""
        then = self._ago(seconds)
        self.redis.hset(f"workers:{worker_id}", "last_heartbeat", then)
        self.redis.zadd("workers:heartbeats", {worker_id: then}, xx=True)

    def run_out_of_time(self, task_id: str) -> None:
        """Lets the time limit of a run be over."""
        then = self._ago(1)
        self.redis.hset(f"tasks:{task_id}", "deadline_at", then)
        self.redis.zadd("executing:deadlines", {task_id: then}, xx=True)

    def end_delay(self, task_id: str) -> None:
        """Lets the time come until which a task is held back."""
        then = self._ago(1)
        self.redis.hset(f"tasks:{task_id}", "available_at", then)
        self.redis.zadd("queue:delayed", {task_id: then}, xx=True)

    def is_waiting(self, worker_id: str) -> bool:
        """Whether a poll of a worker waits for a task."""
        return bool(self.redis.hexists("queue:idle", worker_id))

    def calls(self, command: str) -> int:
        """How often anybody has given Redis a command."""
        told = self.redis.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})
        return int(told["calls"])

    def _ago(self, seconds: float) -> int:
        """A moment by the clock of Redis, in microseconds."""
        now, fraction = self.redis.time()
        return int(now) * 1_000_000 + int(fraction) - int(seconds * 1_000_000)

    def hash(self, task_id: str) -> dict[str, str]:
        """A task as Redis has it, with what it was created with among its fields."""
        return dict(unpacked(self.redis.hgetall(f"tasks:{task_id}")))

    def stored(self) -> list[str]:
        """Every key there is, but for those of the periodic work itself."""
        keys = set(self.redis.keys()) - {"history:outbox"}
        return sorted(each for each in keys if not each.startswith("trim:"))

    def waiting(self, priority: str) -> list[str]:
        """What is in one of the queues, first the next one."""
        return list(self.redis.zrange(f"queue:{priority}", 0, -1))

    def queues_of(self, task_id: str) -> list[str]:
        """Where a task waits, or lies dead."""
        names = ("high", "medium", "low", "delayed", "dlq")
        # In one moment: a task that moves meanwhile would be seen twice, or nowhere.
        with self.redis.pipeline() as pipe:
            for name in names:
                pipe.zscore(f"queue:{name}", task_id)
            return [name for name, score in zip(names, pipe.execute(), strict=True) if score is not None]


def told(answer: httpx.Response) -> dict[str, Any]:
    """The body of an answer that is a success."""
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The refusal in an answer, which has the one shape that all have."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message", "details"]
    assert body["error"]["code"] == code, body
    found: dict[str, Any] = body["error"]
    return found
