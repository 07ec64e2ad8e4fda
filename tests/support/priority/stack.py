"""The processes of a priority queue on a real Redis and a real PostgreSQL, and helpers to call them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from redis import Redis

from generated.priority.system import SYSTEM
from runtime.stores.redis.codec import unpack_fields
from tests.support.orchestrator import stack
from tests.support.plain_http import NO_TLS

wait_until = stack.wait_until
PATIENCE = stack.PATIENCE
SERVE = stack.SERVE
ROLES = ("client", "worker", "admin")
TOKENS = {role: f"{role}-secret" for role in ROLES}
ACCEPTED = ",".join(f"{role}={hashlib.sha256(token.encode()).hexdigest()}" for role, token in TOKENS.items())

NO_PERIODIC_WORK = {
    "PROMOTION_INTERVAL_SECONDS": "3600",
    "WORKER_CHECK_INTERVAL_SECONDS": "3600",
    "TIMEOUT_CHECK_INTERVAL_SECONDS": "3600",
    "DELAY_CHECK_INTERVAL_SECONDS": "3600",
    "DLQ_SWEEP_INTERVAL_SECONDS": "3600",
}
"""Settings under which no periodic work runs."""

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
"""Settings under which all due transitions happen soon."""


class Node(stack.Node):
    """One process of the queue."""

    system = SYSTEM

    def __init__(
        self, name: str, servers: Servers, logs: Path, settings: Mapping[str, str], **more: Any
    ) -> None:
        variables = {"REDIS_URL": servers.redis_url, "ACCEPTED_TOKENS": ACCEPTED, **settings}
        super().__init__(name, servers.database_url, logs, variables, **more)


class Servers:
    """The addresses of the Redis and the PostgreSQL of some processes."""

    def __init__(self, redis_url: str, database_url: str, redis: Any = None) -> None:
        self.redis_url = redis_url
        self.database_url = database_url
        self.redis: Any = redis or Redis.from_url(redis_url, decode_responses=True)


class Stack:
    """One Redis and one PostgreSQL with processes around them."""

    def __init__(self, servers: Servers, logs: Path, deployment: str = "local") -> None:
        self.servers = servers
        self._deployment = deployment
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
        deployment: str = "",
        program: str = SERVE,
        intervals: Mapping[str, str] = NO_PERIODIC_WORK,
        **settings: str,
    ) -> Node:
        """A node with some intervals, not started yet."""
        deployment = deployment or self._deployment
        table = SYSTEM.deployments[deployment].nodes[name]
        short = {key: value for key, value in intervals.items() if key in table.variables}
        node = Node(
            name, self.servers, self._logs, {**short, **settings}, deployment=deployment, program=program
        )
        self.nodes.append(node)
        return node

    def add(self, name: str, /, **more: Any) -> Node:
        """A node that is ready."""
        return self.node(name, **more).start()

    def queue(self, node: Node | None = None) -> Queue:
        """The queue as its callers see it, at one of the APIs."""
        api = node or next(each for each in self.nodes if each.name == "api")
        clients = {role: self.http(api, role) for role in ROLES}
        return Queue(clients, self.redis)

    def http(self, node: Node, role: str) -> httpx.Client:
        """A client with the credentials of a role; anonymous if it is empty."""
        headers = {"authorization": f"Bearer {TOKENS[role]}"} if role else {}
        client = httpx.Client(base_url=node.url, headers=headers, timeout=PATIENCE, verify=NO_TLS)
        self._clients.append(client)
        return client


class Queue:
    """The REST API as a client, a worker and an administrator call it."""

    def __init__(self, clients: Mapping[str, httpx.Client], redis: Any) -> None:
        self.client, self.worker, self.admin = (clients[role] for role in ROLES)
        self.redis = redis

    def post(self, headers: Mapping[str, str] | None = None, /, **body: Any) -> httpx.Response:
        """Submit in any shape, and return the whole answer."""
        return self.client.post("/api/v1/tasks", json=body, headers=headers)

    def submit(self, task_type: str = "echo", **body: Any) -> str:
        """Submit a task; return its id."""
        answer = self.post(task_type=task_type, **body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["task_id"])

    def get(self, task_id: str) -> dict[str, Any]:
        """All fields of a task."""
        return expect_success(self.client.get(f"/api/v1/tasks/{task_id}"))

    def status(self, task_id: str) -> str:
        return str(self.get(task_id)["status"])

    def cancel(self, task_id: str) -> httpx.Response:
        return self.client.delete(f"/api/v1/tasks/{task_id}")

    def stats(self) -> dict[str, Any]:
        return expect_success(self.client.get("/api/v1/queue/stats"))

    def register(self, *capabilities: str, **body: Any) -> str:
        """Register a worker; return its id."""
        answer = expect_success(
            self.worker.post("/internal/workers/register", json={"capabilities": capabilities, **body})
        )
        return str(answer["worker_id"])

    def ask(self, worker_id: str, method: str, **body: Any) -> httpx.Response:
        """Call any method of a worker."""
        return self.worker.post(f"/internal/workers/{worker_id}/{method}", json=body)

    def poll(self, worker_id: str, most: int = 1, **body: Any) -> list[dict[str, Any]]:
        """Claim tasks for a worker."""
        body.setdefault("capabilities", [])
        found = expect_success(self.ask(worker_id, "poll", available_capacity=most, **body))
        return list(found["tasks"])

    def claim(self, worker_id: str, **body: Any) -> dict[str, Any]:
        """Claim the one task that a worker gets."""
        (task,) = self.poll(worker_id, 1, **body)
        return task

    def report(
        self, worker_id: str, task: Mapping[str, Any], status: str = "completed", **body: Any
    ) -> httpx.Response:
        """Report how a run ended."""
        body_ = {"task_id": task["task_id"], "attempt": task["attempt"], "status": status, **body}
        return self.ask(worker_id, "result", **body_)

    def complete(self, worker_id: str, task: Mapping[str, Any], result: object = None) -> None:
        assert expect_success(self.report(worker_id, task, result=result))["status"] == "completed"

    def fail(
        self, worker_id: str, task: Mapping[str, Any], *, retriable: bool = True, message: str = "no"
    ) -> str:
        """Report that a run failed; return the state of the task then."""
        error = {"message": message, "retriable": retriable}
        return str(expect_success(self.report(worker_id, task, "failed", error=error))["status"])

    def beat(self, worker_id: str, load: int = 0, status: str = "active", **body: Any) -> httpx.Response:
        return self.ask(worker_id, "heartbeat", current_load=load, status=status, **body)

    def make_dead_letter(self, worker_id: str, **body: Any) -> str:
        """Submit a task and fail it until it is a dead letter."""
        task_id = self.submit(max_retries=0, **body)
        assert self.fail(worker_id, self.claim(worker_id)) == "dead_letter"
        return task_id

    def silence(self, worker_id: str, seconds: float) -> None:
        """Backdate the last heartbeat of a worker by so long."""
        then = self._micros_ago(seconds)
        self.redis.hset(f"workers:{worker_id}", "last_heartbeat", then)
        self.redis.zadd("workers:heartbeats", {worker_id: then}, xx=True)

    def run_out_of_time(self, task_id: str) -> None:
        """Let the time limit of a run be over."""
        then = self._micros_ago(1)
        self.redis.hset(f"tasks:{task_id}", "deadline_at", then)
        self.redis.zadd("executing:deadlines", {task_id: then}, xx=True)

    def end_delay(self, task_id: str) -> None:
        """Let the delay of a task be over."""
        then = self._micros_ago(1)
        self.redis.hset(f"tasks:{task_id}", "available_at", then)
        self.redis.zadd("queue:delayed", {task_id: then}, xx=True)

    def calls(self, command: str) -> int:
        """How often Redis got a command, from all clients."""
        stats_ = self.redis.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})
        return int(stats_["calls"])

    def _micros_ago(self, seconds: float) -> int:
        """A moment by the clock of Redis, in microseconds."""
        now, fraction = self.redis.time()
        return int(now) * 1_000_000 + int(fraction) - int(seconds * 1_000_000)

    def read_hash(self, task_id: str) -> dict[str, str]:
        """A task as Redis stores it, with its creation fields among the others."""
        return dict(unpack_fields(self.redis.hgetall(f"tasks:{task_id}")))

    def list_keys(self) -> list[str]:
        """Every key there is, but for those of the periodic work itself."""
        keys = set(self.redis.keys()) - {"history:outbox"}
        return sorted(each for each in keys if not each.startswith("trim:"))

    def list_waiting(self, priority: str) -> list[str]:
        """The tasks in one of the queues, the next one first."""
        return list(self.redis.zrange(f"queue:{priority}", 0, -1))

    def list_queues(self, task_id: str) -> list[str]:
        """The queues that a task is in, that of dead letters included."""
        names = ("high", "medium", "low", "delayed", "dlq")
        # In one transaction: a task that is promoted meanwhile would be seen twice, or nowhere.
        with self.redis.pipeline() as pipe:
            for name in names:
                pipe.zscore(f"queue:{name}", task_id)
            return [name for name, score in zip(names, pipe.execute(), strict=True) if score is not None]


def expect_success(answer: httpx.Response) -> dict[str, Any]:
    """The body of an answer that is a success."""
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def expect_refusal(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error in an answer, which has the one form that all have."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message", "details"]
    assert body["error"]["code"] == code, body
    found: dict[str, Any] = body["error"]
    return found
