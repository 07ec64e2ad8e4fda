"""A database that is down, slow, out of sessions, or whose connections break during a statement."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import (
    SERVE,
    Node,
    Stack,
    get,
    new_key,
    post,
    submit,
    wait_until,
)

ABSENT = "00000000-0000-4000-8000-000000000000"
DETAILS = (
    "SQL",
    "asyncpg",
    "postgres",
    "Traceback",
    "127.0.0.1",
    "charter",
    "connect",
    ".py",
    "Error:",
    "password",
)
"""Words that would reveal the implementation behind the service."""


@pytest.fixture(scope="module")
def fragile_stack(own_server: EmbeddedPostgres, logs: Path) -> Iterator[Stack]:
    """An API on a server that tests stop and kill. Every test ends with the server running."""
    with Stack(make_database(own_server), logs) as stack:
        stack.add("api", program=SERVE, CREATED_GRACE_SECONDS="3600")
        yield stack


@contextmanager
def outage(server: EmbeddedPostgres, stack: Stack) -> Iterator[None]:
    """Stop the database, and start it again."""
    server.stop(immediate=True)
    try:
        yield
    finally:
        server.spawn()
        server.wait()
        for node in stack.nodes:
            if node.running:
                node.wait()


def is_unavailable(answer: httpx.Response) -> bool:
    """Whether this is the answer of a service without its database, as documented and no more."""
    body = answer.json()["error"]
    assert body.keys() == {"code", "message"}
    assert [word for word in DETAILS if word in answer.text] == []
    return (
        answer.status_code == 503
        and body["code"] == "SERVICE_UNAVAILABLE"
        and int(answer.headers["retry-after"]) >= 1
    )


@pytest.mark.req("ORC-079", "ORC-097", "ORC-089", "ORC-010", "ORC-X07")
def test_an_api_without_its_database_is_unavailable_and_recovers(
    own_server: EmbeddedPostgres, fragile_stack: Stack
) -> None:
    """503 for every request that needs it, never 202 or 404; then the same process answers as before."""
    api = fragile_stack.api
    key, known = new_key(), submit(api.http)
    pid = api.pid
    with outage(own_server, fragile_stack):
        assert is_unavailable(post(api.http, "echo", {}, key))
        assert is_unavailable(
            api.http.post(
                "/jobs/batch", json={"jobs": [{"jobType": "a", "payload": {}, "idempotencyKey": key}]}
            )
        )
        assert is_unavailable(api.http.get(f"/jobs/{known}"))
        assert is_unavailable(api.http.get(f"/jobs/{ABSENT}"))
        assert is_unavailable(api.http.get("/jobs"))
        assert is_unavailable(api.http.post(f"/jobs/{known}/retry", json={"idempotencyKey": key}))
        # Requests that need no database are answered as ever.
        assert post(api.http, "", {}, key).status_code == 400
        assert api.http.get("/jobs/not-an-id").status_code == 404
        assert api.http.get("/healthz").status_code == 200
        assert api.http.get("/metrics").status_code == 200
        ready = api.http.get("/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (503, False)
        assert [word for word in DETAILS if word in ready.text] == []

    assert api.http.get("/readyz").json() == {"ready": True}
    assert get(api.http, known)["jobId"] == known
    job_id = submit(api.http, "echo", {}, key)
    assert [str(row["job_id"]) for row in fragile_stack.sql.jobs(key)] == [job_id]
    assert api.pid == pid


@pytest.mark.req("ORC-058", "ORC-102", "ORC-002", "ORC-001")
def test_an_accepted_job_survives_the_loss_of_api_and_database(
    own_server: EmbeddedPostgres, fragile_stack: Stack
) -> None:
    """On receipt of the 202 the API and PostgreSQL are killed; the job is there, and so is its key."""
    api, key = fragile_stack.api, new_key()
    job_id = submit(api.http, "echo", {"n": 1}, key)
    api.kill()
    own_server.kill()
    own_server.spawn()
    own_server.wait()

    # That it was queued may be forgotten with the server; that it is stored may not.
    assert fragile_stack.sql.job(job_id)["state"] in ("CREATED", "QUEUED")
    api.start()
    assert submit(api.http, "echo", {"n": 1}, key) == job_id
    assert [row["state"] for row in fragile_stack.sql.jobs(key)] == ["QUEUED"]


@pytest.mark.req("ORC-145")
def test_an_api_that_starts_before_its_database_waits_for_it(
    own_server: EmbeddedPostgres, fragile_stack: Stack
) -> None:
    """It is alive, is not ready, and becomes ready without a restart."""
    with outage(own_server, fragile_stack):
        early = fragile_stack.node("api", program=SERVE).begin()
        wait_until(lambda: _status(early, "/healthz") == 200, "it lives")
        assert _status(early, "/readyz") == 503
    early.wait()
    assert get(early.http, submit(early.http))["status"] == "PENDING"


@pytest.mark.req("ORC-145", "ORC-079")
def test_an_unreachable_database_is_not_flooded_with_connections(
    own_server: EmbeddedPostgres, fragile_stack: Stack
) -> None:
    """Of very many requests few try to connect; the others are refused at once."""
    api, tried = fragile_stack.api, 0
    with (
        outage(own_server, fragile_stack),
        socket.create_server(("127.0.0.1", own_server.port)) as closed_door,
    ):
        closed_door.settimeout(0.2)
        over = threading.Event()

        def count_connections() -> int:
            count = 0
            while not over.is_set():
                with suppress(TimeoutError):
                    closed_door.accept()[0].close()
                    count += 1
            return count

        with ThreadPoolExecutor(9) as pool:
            turning = pool.submit(count_connections)
            try:
                answers = list(pool.map(lambda _: api.http.get(f"/jobs/{ABSENT}"), range(300)))
            finally:
                over.set()
            tried = turning.result()
    assert all(is_unavailable(answer) for answer in answers)
    assert tried < len(answers) / 3


@pytest.mark.req("ORC-079")
def test_blocked_sessions_do_not_delay_other_calls_for_long(fragile_stack: Stack) -> None:
    """When every session waits for a lock, further calls are refused at once, and all recovers afterwards."""
    api, job_id = fragile_stack.api, submit(fragile_stack.api.http)
    with Sql(fragile_stack.database) as other:
        other.run("BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        try:
            with ThreadPoolExecutor(20) as pool:
                answers = list(pool.map(lambda _: api.http.get(f"/jobs/{job_id}"), range(20)))
        finally:
            other.run("ROLLBACK")
    assert {answer.status_code for answer in answers} <= {503, 504}
    assert any(is_unavailable(answer) for answer in answers if answer.status_code == 503)
    wait_until(lambda: api.http.get(f"/jobs/{job_id}").status_code == 200, "it answers again")


@pytest.mark.req("ORC-079")
def test_a_session_that_ends_before_its_commit_stores_nothing(fragile_stack: Stack) -> None:
    """503 and no row; the repeat stores the job."""
    api, key = fragile_stack.api, new_key()
    fragile_stack.sql.run(
        "CREATE FUNCTION be_ended() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;"
        " CREATE TRIGGER an_end AFTER INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION be_ended()"
    )
    try:
        assert is_unavailable(post(api.http, "echo", {}, key))
    finally:
        fragile_stack.sql.run("DROP FUNCTION be_ended CASCADE")
    assert fragile_stack.sql.jobs(key) == []
    job_id = submit(api.http, "echo", {}, key)
    assert [str(row["job_id"]) for row in fragile_stack.sql.jobs(key)] == [job_id]


@pytest.mark.req("ORC-079", "ORC-072")
def test_an_unconfirmed_commit_is_not_acknowledged(
    fragile_stack: Stack, own_server: EmbeddedPostgres
) -> None:
    """The row is stored and the answer of the database is lost: 503; the repeat finds this one row."""
    with Proxy(own_server.port) as line:
        url = fragile_stack.database.replace(f":{own_server.port}/", f":{line.port}/")
        far = Stack(url, fragile_stack.api.log.parent)
        with far:
            api = far.add("api", program=SERVE, CREATED_GRACE_SECONDS="3600")
            # A connection that has to ask for the plan first does not get as far as the row: then once more.
            for key in (new_key() for _ in range(10)):
                submit(api.http)
                if _submit_without_answer(fragile_stack, api, line, key):
                    break
            job_id = submit(api.http, "echo", {}, key)
    assert [str(row["job_id"]) for row in fragile_stack.sql.jobs(key)] == [job_id]


def _submit_without_answer(stack: Stack, api: Node, line: Proxy, key: str) -> bool:
    """Submit while no answer of the database arrives; return whether the row was stored."""
    line.deaf.set()
    with ThreadPoolExecutor(1) as pool:
        submitting = pool.submit(post, api.http, "echo", {}, key)
        wait_until(lambda: stack.sql.jobs(key) or submitting.done(), "the row is stored, or given up")
        line.cut()
        answer = submitting.result()
        assert answer.status_code == 504 or is_unavailable(answer)
    line.deaf.clear()
    wait_until(lambda: api.http.get("/readyz").status_code == 200, "it is connected again")
    return answer.status_code == 503 and bool(stack.sql.jobs(key))


class Proxy:
    """A proxy to a server that can drop the answers, and break the connections."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.deaf = threading.Event()
        """While it is set, nothing that the server says arrives."""
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Break every connection."""
        while self._ends:
            end = self._ends.pop()
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._ends += (near, far)
                threading.Thread(target=self._carry, args=(near, far, False), daemon=True).start()
                threading.Thread(target=self._carry, args=(far, near, True), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, back: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not (back and self.deaf.is_set()):
                    target.sendall(data)


def _status(node: Node, path: str) -> int:
    try:
        return node.http.get(path).status_code
    except httpx.TransportError:
        return 0
