"""The priority queue as it is deployed on one machine: an API process, and a worker process."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import redis

from bench.machine import allocate_port
from bench.peers.apps.on_redis.task_app import NEEDS
from bench.peers.on_redis.contestants import Queue
from bench.peers.on_redis.server import Server
from bench.peers.programs import Producing, Program, python
from bench.peers.run import BULK
from bench.peers.shared_measures import produced

SYSTEM = "priority"
IN_PROCESS = "charter in process"
OVER_GRPC = "charter over gRPC"
OVER_HTTP = "charter over HTTP"
SLOTS = {10: "charter, 10 at a time", 100: "charter, 100 at a time"}
BESIDE = ", empty queue"
"""What the same is called where it has nothing to carry, while others have."""
_RARE = "a capability that no worker has"


@dataclass(frozen=True, slots=True)
class OurQueue(Queue):
    """Ours, whose tasks that nobody takes wait in the very queue that is drained."""

    carrying: Producing

    def prepare(self, aged: bool) -> None:
        """Leave no task, or none but those that need what no worker has."""
        if aged:
            self.database.run("clear_tasks")
        else:
            self.database.empty()

    def age(self, jobs: int) -> str:
        """Give it tasks that no worker can run; what to tell of it."""
        self.database.empty()
        # As many again as one call has are submitted before its clock runs.
        produced(self.carrying, "bulk", jobs - BULK, BULK)
        with self.database.opened() as there:
            waiting = int(there.zcard("queue:medium"))
        return f"{self.name}: {waiting:,} tasks wait in the same queue for a worker that is not there"


@dataclass(frozen=True, slots=True)
class Unburdened(Queue):
    """Ours without anything else in it, to be measured in the same rounds as one that has much."""

    def prepare(self, aged: bool) -> None:  # noqa: ARG002
        """Leave no task, whatever the others have."""
        self.database.empty()

    def age(self, _jobs: int) -> str:
        """Stays as it is; what to tell of it."""
        return f"{self.name}{BESIDE}: nothing waits besides"


def unburdened(server: Server, number: int) -> Queue:
    """Only what is asked about depth."""
    full = queue(server, number)
    drain = SLOTS[100]
    return Unburdened(
        name=full.name,
        database=full.database,
        producers={f"{IN_PROCESS}{BESIDE}": full.producers[IN_PROCESS]},
        workers={f"{drain}{BESIDE}": full.workers[drain]},
        pickups={},
        filler=f"{IN_PROCESS}{BESIDE}",
        left=full.left,
    )


def queue(server: Server, number: int) -> OurQueue:
    """A database, and the programs around it."""
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
    api = Program((*python("runtime.serve"), f"{SYSTEM}.local.api"), environ)
    typed = Program(python("bench.peers.apps.on_redis.task_app"), environ)
    alone = Producing(typed, database.url)
    workers = {name: _worker(environ, slots) for slots, name in SLOTS.items()}
    idle = _worker(environ, 10)
    return OurQueue(
        name=SYSTEM,
        database=database,
        producers={
            IN_PROCESS: alone,
            OVER_GRPC: Producing(typed, f"127.0.0.1:{ports['GRPC_PORT']}", api, int(ports["GRPC_PORT"])),
            OVER_HTTP: Producing(
                Program(python("bench.peers.apps.on_redis.task_http_app"), environ),
                f"http://127.0.0.1:{ports['API_PORT']}",
                api,
                int(ports["API_PORT"]),
            ),
        },
        workers=workers,
        pickups={IN_PROCESS: (IN_PROCESS, idle), OVER_HTTP: (OVER_HTTP, idle)},
        filler=IN_PROCESS,
        left=_unfinished,
        carrying=Producing(Program(typed.command, {**environ, NEEDS: _RARE}), database.url),
    )


def _worker(environ: dict[str, str], slots: int) -> Program:
    command = (*python("bench.peers.apps.our_worker"), f"{SYSTEM}.local.worker")
    return Program(command, {**environ, "WORKER_CAPACITY": str(slots)})


def _unfinished(there: redis.Redis) -> int:
    """Those that any worker can run, and those that one runs."""
    return int(there.zcard("queue:medium:cap:any")) + int(there.zcard("executing:deadlines"))
