"""Contestants on Redis: queues, each in a database of its own and with its own worker command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import redis

from bench.peers.install import Environment
from bench.peers.on_redis.install import PeerEnvironments
from bench.peers.on_redis.server import RedisDatabase, RedisServer
from bench.peers.programs import ProducerCommand, Program

CountLeft = Callable[[redis.Redis], int]
"""Counts the jobs that are not finished yet."""
_OTHERS = "another:queue"
_APPS = "bench.peers.apps.on_redis"
RQ, ARQ, SAQ, DRAMATIQ = "rq", "arq", "saq", "dramatiq"
CELERY, TASKIQ, HUEY = "celery", "taskiq", "huey"
BULLMQ = "BullMQ"
PYTHON_PEERS = (RQ, ARQ, SAQ, DRAMATIQ, CELERY, TASKIQ, HUEY)


@dataclass(frozen=True, slots=True)
class RedisQueue:
    """A queue in a database of its own."""

    name: str
    database: RedisDatabase
    producers: Mapping[str, ProducerCommand]
    workers: Mapping[str, Program]
    pickups: Mapping[str, tuple[str, Program]]
    """Producer and worker of each pickup measurement."""
    filler: str
    """The producer that fills it before a drain."""
    count_left: CountLeft

    def prepare(self, aged: bool) -> None:
        """Delete all jobs, or all but those of `age`."""
        if aged:
            self.database.delete_except(_OTHERS)
        else:
            self.database.empty()

    def age(self, jobs: int) -> str:
        """Fill another queue with that many jobs, which has no worker; return a line for the log."""
        self.database.empty()
        return (
            f"{self.name}: {self.database.run_script('fill', (_OTHERS,), jobs):,} jobs wait in another queue"
        )


def create_peers(server: RedisServer, environments: PeerEnvironments) -> list[RedisQueue]:
    """Create all peers, each with its defaults unless more concurrency makes it faster."""
    queues = [
        _create_python_peer(server, number, name, environments.select(name), command, left)
        for number, (name, (command, left)) in enumerate(_COMMANDS.items(), 1)
    ]
    if environments.node is not None:
        queues.append(_create_bullmq(server, len(queues) + 1, *environments.node))
    return queues


def _create_python_peer(
    server: RedisServer, number: int, name: str, peer: Environment, command: tuple[str, ...], left: CountLeft
) -> RedisQueue:
    database = server.database(number)
    environ = {"REDIS_URL": database.url}
    words = [each.format(url=database.url, apps=_APPS) for each in command]
    worker = Program((peer.program(words[0]), *words[1:]), environ)
    producing = ProducerCommand(
        Program((peer.program("python"), "-m", f"{_APPS}.{name}_app"), environ), database.url
    )
    return _create_queue(name, database, producing, worker, left)


def _create_bullmq(server: RedisServer, number: int, node: str, modules: str) -> RedisQueue:
    database = server.database(number)
    environ = {"REDIS_URL": database.url, "BENCH_NODE_MODULES": modules, "BENCH_SLOTS": "100"}
    app = (node, "bench/peers/apps/on_redis/bullmq_app.cjs")
    producing = ProducerCommand(Program(app, environ), database.url)
    return _create_queue(BULLMQ, database, producing, Program((*app, "worker"), environ), _count_bullmq)


def _create_queue(
    name: str, database: RedisDatabase, producing: ProducerCommand, worker: Program, left: CountLeft
) -> RedisQueue:
    return RedisQueue(
        name=name,
        database=database,
        producers={name: producing},
        workers={name: worker},
        pickups={name: (name, worker)},
        filler=name,
        count_left=left,
    )


def _count_rq(client: redis.Redis) -> int:
    return int(client.llen("rq:queue:default")) + int(client.zcard("rq:wip:default"))


def _count_arq(client: redis.Redis) -> int:
    return int(client.zcard("arq:queue"))


def _count_saq(client: redis.Redis) -> int:
    return int(client.zcard("saq:default:incomplete"))


def _count_dramatiq(client: redis.Redis) -> int:
    return int(client.hlen("dramatiq:default.msgs"))


def _count_celery(client: redis.Redis) -> int:
    return int(client.llen("celery")) + int(client.hlen("unacked"))


def _count_taskiq(client: redis.Redis) -> int:
    last = client.xinfo_stream("taskiq")["last-generated-id"]
    groups = client.xinfo_groups("taskiq")
    return sum(int(each["pending"]) + (each["last-delivered-id"] != last) for each in groups)


def _count_huey(client: redis.Redis) -> int:
    return int(client.llen("huey.redis.bench"))


def _count_bullmq(client: redis.Redis) -> int:
    return int(client.llen("bull:bench:wait")) + int(client.llen("bull:bench:active"))


_RQ = "import bench.peers.apps.on_redis.rq_app, sys; from rq.cli import main; sys.exit(main())"
"""Its command, with the functions imported beforehand as its documentation advises."""
_COMMANDS: Mapping[str, tuple[tuple[str, ...], CountLeft]] = {
    RQ: (("python", "-c", _RQ, "worker", "--url", "{url}"), _count_rq),
    ARQ: (("arq", "{apps}.arq_app.WorkerSettings"), _count_arq),
    SAQ: (("saq", "{apps}.saq_app.settings"), _count_saq),
    DRAMATIQ: (("dramatiq", "{apps}.dramatiq_app", "--processes", "1"), _count_dramatiq),
    CELERY: (("celery", "-A", "{apps}.celery_app", "worker", "--concurrency", "1"), _count_celery),
    TASKIQ: (("taskiq", "worker", "{apps}.taskiq_app:broker", "--workers", "1"), _count_taskiq),
    HUEY: (("huey_consumer", "{apps}.huey_tasks.huey"), _count_huey),
}
"""By peer, its own worker command with one process, and the counter of unfinished jobs."""
