"""Who takes part: queues on Redis, each in a database of its own and run by its own command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import redis

from bench.peers.install import Environment
from bench.peers.on_redis.install import Peers
from bench.peers.on_redis.server import Database, Server
from bench.peers.programs import Producing, Program

Left = Callable[[redis.Redis], int]
"""How many jobs are not finished yet."""
_OTHERS = "another:queue"
_APPS = "bench.peers.apps.on_redis"
RQ, ARQ, SAQ, DRAMATIQ = "rq", "arq", "saq", "dramatiq"
CELERY, TASKIQ, HUEY = "celery", "taskiq", "huey"
BULLMQ = "BullMQ"
PYTHON_PEERS = (RQ, ARQ, SAQ, DRAMATIQ, CELERY, TASKIQ, HUEY)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue in a database of its own."""

    name: str
    database: Database
    producers: Mapping[str, Producing]
    workers: Mapping[str, Program]
    pickups: Mapping[str, tuple[str, Program]]
    """Producer and worker of each way to have a job picked up."""
    filler: str
    """The producer that fills it before a drain."""
    left: Left

    def prepare(self, aged: bool) -> None:
        """Leave no job, or none but those that no worker of the run takes."""
        if aged:
            self.database.forget(_OTHERS)
        else:
            self.database.empty()

    def age(self, jobs: int) -> str:
        """Give it another queue with so many jobs that nobody takes; what to tell of it."""
        self.database.empty()
        return f"{self.name}: {self.database.run('fill', (_OTHERS,), jobs):,} jobs wait in another queue"


def peers(server: Server, found: Peers) -> list[Queue]:
    """All of them, each at its defaults unless more at a time makes it faster."""
    made = [
        _python(server, number, name, found.of(name), command, left)
        for number, (name, (command, left)) in enumerate(_COMMANDS.items(), 1)
    ]
    if found.node is not None:
        made.append(_bullmq(server, len(made) + 1, *found.node))
    return made


def _python(
    server: Server, number: int, name: str, peer: Environment, command: tuple[str, ...], left: Left
) -> Queue:
    database = server.database(number)
    environ = {"REDIS_URL": database.url}
    words = [each.format(url=database.url, apps=_APPS) for each in command]
    worker = Program((peer.program(words[0]), *words[1:]), environ)
    producing = Producing(
        Program((peer.program("python"), "-m", f"{_APPS}.{name}_app"), environ), database.url
    )
    return _alone(name, database, producing, worker, left)


def _bullmq(server: Server, number: int, node: str, modules: str) -> Queue:
    database = server.database(number)
    environ = {"REDIS_URL": database.url, "BENCH_NODE_MODULES": modules, "BENCH_SLOTS": "100"}
    app = (node, "bench/peers/apps/on_redis/bullmq_app.cjs")
    producing = Producing(Program(app, environ), database.url)
    return _alone(BULLMQ, database, producing, Program((*app, "worker"), environ), _of_bullmq)


def _alone(name: str, database: Database, producing: Producing, worker: Program, left: Left) -> Queue:
    return Queue(
        name=name,
        database=database,
        producers={name: producing},
        workers={name: worker},
        pickups={name: (name, worker)},
        filler=name,
        left=left,
    )


def _of_rq(there: redis.Redis) -> int:
    return int(there.llen("rq:queue:default")) + int(there.zcard("rq:wip:default"))


def _of_arq(there: redis.Redis) -> int:
    return int(there.zcard("arq:queue"))


def _of_saq(there: redis.Redis) -> int:
    return int(there.zcard("saq:default:incomplete"))


def _of_dramatiq(there: redis.Redis) -> int:
    return int(there.hlen("dramatiq:default.msgs"))


def _of_celery(there: redis.Redis) -> int:
    return int(there.llen("celery")) + int(there.hlen("unacked"))


def _of_taskiq(there: redis.Redis) -> int:
    last = there.xinfo_stream("taskiq")["last-generated-id"]
    groups = there.xinfo_groups("taskiq")
    return sum(int(each["pending"]) + (each["last-delivered-id"] != last) for each in groups)


def _of_huey(there: redis.Redis) -> int:
    return int(there.llen("huey.redis.bench"))


def _of_bullmq(there: redis.Redis) -> int:
    return int(there.llen("bull:bench:wait")) + int(there.llen("bull:bench:active"))


_RQ = "import bench.peers.apps.on_redis.rq_app, sys; from rq.cli import main; sys.exit(main())"
"""Its command, with the functions imported beforehand as its documentation advises."""
_COMMANDS: Mapping[str, tuple[tuple[str, ...], Left]] = {
    RQ: (("python", "-c", _RQ, "worker", "--url", "{url}"), _of_rq),
    ARQ: (("arq", "{apps}.arq_app.WorkerSettings"), _of_arq),
    SAQ: (("saq", "{apps}.saq_app.settings"), _of_saq),
    DRAMATIQ: (("dramatiq", "{apps}.dramatiq_app", "--processes", "1"), _of_dramatiq),
    CELERY: (("celery", "-A", "{apps}.celery_app", "worker", "--concurrency", "1"), _of_celery),
    TASKIQ: (("taskiq", "worker", "{apps}.taskiq_app:broker", "--workers", "1"), _of_taskiq),
    HUEY: (("huey_consumer", "{apps}.huey_tasks.huey"), _of_huey),
}
"""Each by its own command with one process, and how to see what it has left."""
