"""The priority queue on one machine: an API process, and a worker process."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import redis

from bench.machine import allocate_port
from bench.peers.apps.on_redis.task_app import NEEDS
from bench.peers.on_redis.contestants import RedisQueue
from bench.peers.on_redis.server import RedisServer
from bench.peers.programs import ProducerCommand, Program, make_python_command
from bench.peers.rounds import BULK
from bench.peers.server_bench import run_producer

SYSTEM = "priority"
IN_PROCESS = "charter in process"
OVER_GRPC = "charter over gRPC"
OVER_HTTP = "charter over HTTP"
SLOTS = {10: "charter, 10 at a time", 100: "charter, 100 at a time"}
BESIDE = ", empty queue"
"""Suffix of a contestant's name for its measurement with an empty queue in the second half."""
_RARE = "a capability that no worker has"


@dataclass(frozen=True, slots=True)
class OurQueue(RedisQueue):
    """Our queue, whose unclaimable tasks wait in the same queue that is drained."""

    backlog_producer: ProducerCommand

    def prepare(self, aged: bool) -> None:
        """Delete all tasks, or all but those whose capability no worker has."""
        if aged:
            self.database.run_script("clear_tasks")
        else:
            self.database.empty()

    def age(self, jobs: int) -> str:
        """Submit that many tasks that no worker can run; return a line for the log."""
        self.database.empty()
        # A producer submits the jobs of one call more before its measurement starts.
        run_producer(self.backlog_producer, "bulk", jobs - BULK, BULK)
        with self.database.open() as client:
            waiting = int(client.zcard("queue:medium"))
        return f"{self.name}: {waiting:,} tasks wait in the same queue for a worker that is not there"


@dataclass(frozen=True, slots=True)
class EmptyQueue(RedisQueue):
    """Our queue without other tasks, to be measured in the same rounds as the deep one."""

    def prepare(self, aged: bool) -> None:  # noqa: ARG002
        """Delete all tasks."""
        self.database.empty()

    def age(self, _jobs: int) -> str:
        """Insert nothing; return a line for the log."""
        return f"{self.name}{BESIDE}: nothing waits besides"


def create_empty_queue(server: RedisServer, number: int) -> RedisQueue:
    """Create the empty queue, with only the measurements that depth is about."""
    full = create_queue(server, number)
    drain = SLOTS[100]
    return EmptyQueue(
        name=full.name,
        database=full.database,
        producers={f"{IN_PROCESS}{BESIDE}": full.producers[IN_PROCESS]},
        workers={f"{drain}{BESIDE}": full.workers[drain]},
        pickups={},
        filler=f"{IN_PROCESS}{BESIDE}",
        count_left=full.count_left,
    )


def create_queue(server: RedisServer, number: int) -> OurQueue:
    """Create a database, and the programs that use it."""
    database = server.database(number)
    token = secrets.token_urlsafe(16)
    ports = {each: str(allocate_port()) for each in ("API_PORT", "GRPC_PORT", "WORKER_PORT")}
    environ = {
        "REDIS_URL": database.url,
        "DATABASE_URL": server.history.url,
        "ACCEPTED_TOKENS": f"client={hashlib.sha256(token.encode()).hexdigest()}",
        "CLIENT_TOKEN": token,
        **ports,
    }
    api = Program((*make_python_command("runtime.serve"), f"{SYSTEM}.local.api"), environ)
    typed = Program(make_python_command("bench.peers.apps.on_redis.task_app"), environ)
    alone = ProducerCommand(typed, database.url)
    workers = {name: _create_worker(environ, slots) for slots, name in SLOTS.items()}
    idle = _create_worker(environ, 10)
    return OurQueue(
        name=SYSTEM,
        database=database,
        producers={
            IN_PROCESS: alone,
            OVER_GRPC: ProducerCommand(
                typed, f"127.0.0.1:{ports['GRPC_PORT']}", api, int(ports["GRPC_PORT"])
            ),
            OVER_HTTP: ProducerCommand(
                Program(make_python_command("bench.peers.apps.on_redis.task_http_app"), environ),
                f"http://127.0.0.1:{ports['API_PORT']}",
                api,
                int(ports["API_PORT"]),
            ),
        },
        workers=workers,
        pickups={IN_PROCESS: (IN_PROCESS, idle), OVER_HTTP: (OVER_HTTP, idle)},
        filler=IN_PROCESS,
        count_left=_count_unfinished,
        backlog_producer=ProducerCommand(Program(typed.command, {**environ, NEEDS: _RARE}), database.url),
    )


def _create_worker(environ: dict[str, str], slots: int) -> Program:
    command = (*make_python_command("bench.peers.apps.our_worker"), f"{SYSTEM}.local.worker")
    return Program(command, {**environ, "WORKER_CAPACITY": str(slots)})


def _count_unfinished(client: redis.Redis) -> int:
    """Count the tasks that any worker can run, and those in flight."""
    return int(client.zcard("queue:medium:cap:any")) + int(client.zcard("executing:deadlines"))
