"""Baseline: a hand-written queue with Starlette and sqlite3, without checks and history.

`python -m bench.queuey.bare FILE` serves it. It has the durability of the real one: a commit for each
request, on the disk before the answer.
"""

from __future__ import annotations

import json
import socket
import sqlite3
import sys
import time
import uuid
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, job_id TEXT UNIQUE, binary_addr TEXT, input_addr TEXT, created_at INTEGER,
    updated_at INTEGER, completed_at INTEGER, status TEXT, run_attempts INTEGER, runner_id TEXT,
    output_addr TEXT);
CREATE INDEX IF NOT EXISTS waiting ON jobs (created_at, number) WHERE status = 'pending';
"""
_CREATE = (
    "INSERT INTO jobs (job_id, binary_addr, input_addr, created_at, updated_at, status, run_attempts)"
    " VALUES (?, ?, ?, ?, ?, 'pending', 0) RETURNING *"
)
_CLAIM = (
    "UPDATE jobs SET status = 'active', runner_id = ?, run_attempts = run_attempts + 1, updated_at = ?"
    " WHERE number = (SELECT number FROM jobs WHERE status = 'pending' ORDER BY created_at, number LIMIT 1)"
    " RETURNING *"
)
_COMPLETE = (
    "UPDATE jobs SET status = ?, output_addr = ?, updated_at = ?, completed_at = ?"
    " WHERE job_id = ? AND status = 'active' RETURNING *"
)


class HandwrittenQueue:
    """Queue with one connection, and a transaction for each request."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_SCHEMA)

    async def create(self, request: Request) -> Response:
        body = await request.json()
        now = _read_now_ms()
        key = str(uuid.uuid4()).upper()
        return self._answer(_CREATE, key, body["binary_addr"], body.get("input_addr"), now, now)

    async def claim(self, request: Request) -> Response:
        body = await request.json()
        return self._answer(_CLAIM, body["runner_id"], _read_now_ms())

    async def complete(self, request: Request) -> Response:
        body = await request.json()
        now = _read_now_ms()
        wanted = (body["status"], body.get("output_addr"), now, now, request.path_params["job_id"])
        return self._answer(_COMPLETE, *wanted)

    def _answer(self, statement: str, *given: Any) -> Response:
        rows = self._connection.execute(statement, given).fetchall()
        return JSONResponse(dict(rows[0])) if rows else Response(status_code=204)


def _read_now_ms() -> int:
    return time.time_ns() // 1_000_000


def main(path: str) -> None:
    """Serve until the process ends; print the port first."""
    queue = HandwrittenQueue(path)
    app = Starlette(
        routes=[
            Route("/jobs/create", queue.create, methods=["POST"]),
            Route("/jobs/claim", queue.claim, methods=["POST"]),
            Route("/jobs/{job_id}/complete", queue.complete, methods=["POST"]),
        ]
    )
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"event": "service_ready", "http_port": listening.getsockname()[1]}), flush=True)
    config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1])
