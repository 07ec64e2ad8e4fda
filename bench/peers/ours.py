"""The orchestrator as it is deployed on one machine: an API process, and a worker process."""

from __future__ import annotations

from collections.abc import Mapping

from bench.machine import allocate_port
from bench.peers.apps.on_postgres.enqueue_app import KEYS
from bench.peers.contestants import Queue
from bench.peers.programs import Producing, Program, python
from bench.peers.server import Database as Place
from bench.peers.server import Server
from runtime.stores.postgres.database import Database
from runtime.stores.postgres.schema.migrations import migrate

SYSTEM = "orchestrator"
OVER_HTTP = "charter over HTTP"
IN_DATABASE = "charter in the database"
WITH_KEYS = "charter in the database, with keys"
SLOTS = {1: "charter, 1 at a time", 10: "charter, 10 at a time", 200: "charter, 200 slots, 100 an exchange"}


async def queue(server: Server, name: str = SYSTEM) -> Queue:
    """A database with the schema, and the programs around it."""
    place = server.database(name, SYSTEM)
    database = Database(place.url)
    await migrate(database, SYSTEM)
    await database.close()
    return around(place)


def around(place: Place) -> Queue:
    """The programs around a database that has the schema."""
    ports = {each: str(allocate_port()) for each in ("API_PORT", "GRPC_PORT", "WORKER_PORT")}
    environ = {"DATABASE_URL": place.url, **ports}
    api = Program((*python("runtime.serve"), f"{SYSTEM}.local.api"), environ)
    http = Producing(
        Program(python("bench.peers.apps.on_postgres.http_app")),
        f"http://127.0.0.1:{ports['API_PORT']}",
        service=api,
        ready_port=int(ports["API_PORT"]),
    )
    app = python("bench.peers.apps.on_postgres.enqueue_app")
    enqueue = Producing(Program(app), place.url)
    with_keys = Producing(Program(app, {KEYS: "yes"}), place.url)
    waiting = _worker(environ, 1, "bench.peers.apps.our_worker")
    return Queue(
        name=SYSTEM,
        database=place,
        producers={IN_DATABASE: enqueue, WITH_KEYS: with_keys, OVER_HTTP: http},
        workers={name: _worker(environ, slots) for slots, name in SLOTS.items()},
        pickups={IN_DATABASE: (IN_DATABASE, waiting), OVER_HTTP: (OVER_HTTP, waiting)},
        filler=IN_DATABASE,
    )


def _worker(environ: Mapping[str, str], slots: int, module: str = "runtime.serve") -> Program:
    command = (*python(module), f"{SYSTEM}.local.worker")
    return Program(command, {**environ, "WORKER_CONCURRENCY": str(slots)})
