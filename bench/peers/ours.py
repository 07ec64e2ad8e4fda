"""The orchestrator on one machine: an API process, and a worker process."""

from __future__ import annotations

from collections.abc import Mapping

from bench.machine import allocate_port
from bench.peers.apps.on_postgres.enqueue_app import KEYS
from bench.peers.contestants import PostgresQueue
from bench.peers.programs import ProducerCommand, Program, make_python_command
from bench.peers.server import PostgresDatabase, PostgresServer
from runtime.stores.postgres.database import Database
from runtime.stores.postgres.schema.migrations import migrate

SYSTEM = "orchestrator"
OVER_HTTP = "charter over HTTP"
IN_DATABASE = "charter in the database"
WITH_KEYS = "charter in the database, with keys"
SLOTS = {1: "charter, 1 at a time", 10: "charter, 10 at a time", 200: "charter, 200 slots, 100 an exchange"}


async def create_queue(server: PostgresServer, name: str = SYSTEM) -> PostgresQueue:
    """Create a database with the schema, and the programs that use it."""
    database = server.database(name, SYSTEM)
    store = Database(database.url)
    await migrate(store, SYSTEM)
    await store.close()
    return add_programs(database)


def add_programs(database: PostgresDatabase) -> PostgresQueue:
    """Add the programs to a database that has the schema."""
    ports = {each: str(allocate_port()) for each in ("API_PORT", "GRPC_PORT", "WORKER_PORT")}
    environ = {"DATABASE_URL": database.url, **ports}
    api = Program((*make_python_command("runtime.serve"), f"{SYSTEM}.local.api"), environ)
    http = ProducerCommand(
        Program(make_python_command("bench.peers.apps.on_postgres.http_app")),
        f"http://127.0.0.1:{ports['API_PORT']}",
        service=api,
        ready_port=int(ports["API_PORT"]),
    )
    app = make_python_command("bench.peers.apps.on_postgres.enqueue_app")
    enqueue = ProducerCommand(Program(app), database.url)
    with_keys = ProducerCommand(Program(app, {KEYS: "yes"}), database.url)
    waiting = _create_worker(environ, 1, "bench.peers.apps.our_worker")
    return PostgresQueue(
        name=SYSTEM,
        database=database,
        producers={IN_DATABASE: enqueue, WITH_KEYS: with_keys, OVER_HTTP: http},
        workers={name: _create_worker(environ, slots) for slots, name in SLOTS.items()},
        pickups={IN_DATABASE: (IN_DATABASE, waiting), OVER_HTTP: (OVER_HTTP, waiting)},
        filler=IN_DATABASE,
    )


def _create_worker(environ: Mapping[str, str], slots: int, module: str = "runtime.serve") -> Program:
    command = (*make_python_command(module), f"{SYSTEM}.local.worker")
    return Program(command, {**environ, "WORKER_CONCURRENCY": str(slots)})
