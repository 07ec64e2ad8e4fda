"""Tests of the launcher that restarts what dies, against real processes on free ports."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.messages import GetJobStatusRequest, JobSpec, SubmitJobRequest
from runtime.client import connect
from runtime.embedded.kinds import KINDS
from runtime.embedded.programs import EmbeddedError
from runtime.embedded.server import EmbeddedServer
from runtime.launch.supervision import ServerChild, Supervisor
from tests.runtime.launch.test_launch import gone
from tests.runtime.launch.up import PATIENCE, Up, answered, up
from tests.support import eventually

MICROSERVICES = "taskqueue.microservices"
Seen = TypeVar("Seen")
RESTARTED = "restart 1 of at most 5 in a row follows in 0.5 s"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user may pass through, whom root lends to the database."""
    with tempfile.TemporaryDirectory(prefix="charter-up-") as made:
        Path(made).chmod(0o711)
        yield Path(made)


def wait_until(look: Callable[[], Seen], running: Up) -> Seen:
    """What is seen once it is anything at all, as long as the launcher runs."""

    def seen() -> tuple[Seen, list[str]]:
        found = look()
        assert found or running.process.poll() is None, running.told
        return found, running.told

    return eventually.wait_until(seen, wanted=lambda each: each[0])[0]


def wait_for_line(running: Up, start: str) -> str:
    """The line of the launcher that starts so, once there is one."""
    found = wait_until(lambda: [line for line in running.told if line.startswith(start)], running)
    return found[0]


def wait_for_restart(running: Up, name: str) -> int:
    """The process id of what was restarted once, a node not before it has written that it is ready again."""
    wait_until(lambda: sum(line.startswith(f"{name}: pid ") for line in running.told) >= 2, running)
    log = running.logs / f"{name}.jsonl"
    wait_until(lambda: not log.exists() or log.read_text().count('"service_ready"') >= 2, running)
    return running.pids()[name]


def lines_of(running: Up, name: str) -> list[str]:
    """What the launcher wrote of one process, its health aside."""
    return [
        line
        for line in running.told
        if line.startswith(f"{name}: ") and not line.endswith(("healthy", "stopped"))
    ]


async def run_job(address: str) -> None:
    """Submits a job and returns when it has ended; whatever comes back from a start is waited for."""
    async with connect("taskqueue", address) as client:
        api = client.of(TaskQueuePublicServiceClient)
        request = SubmitJobRequest(spec=JobSpec(job_type="any"))
        answer = await answered(lambda: api.submit_job(request, client.call()))
        status = GetJobStatusRequest(job_id=answer.job_id)
        await eventually.eventually(
            lambda: answered(lambda: api.get_job_status(status, client.call())),
            wanted=lambda job: job.finished_at_ms,
        )


def answers(server: EmbeddedServer) -> bool:
    """Whether a server has come up; one that a child of the killed one still hinders is tried again."""
    try:
        server.wait()
    except EmbeddedError:
        return False
    return True


def ask(url: str, body: object = None) -> Any:
    """The answer of the orchestrator's API; None while it cannot answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError) and error.code < 500:
            raise
        return None


def test_a_worker_that_is_killed_is_restarted(tmp_path: Path) -> None:
    """One line says so, the others go on as they were, jobs run, and SIGTERM stops all with exit code 0."""
    with up(tmp_path, MICROSERVICES, "--tls", "off") as running:
        before = running.pids()
        os.kill(before["worker"], signal.SIGKILL)
        wait_for_restart(running, "worker")
        assert lines_of(running, "worker")[1] == f"worker: died of signal 9; {RESTARTED}"
        asyncio.run(run_job(running.ready["env"]["CHARTER_ADDRESS"]))

        after = running.pids()
        assert {name for name in before if after[name] != before[name]} == {"worker"}
        assert not any(gone(pid) for pid in after.values())
        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == (0, "")

    assert all(gone(pid) for pid in after.values())


def test_an_api_and_a_database_that_are_killed_come_back_where_they_were(folder: Path) -> None:
    """Both have their port, their password and their data again: an old job is there, a new one runs."""
    with up(folder, "orchestrator.local", CHARTER_DATA=str(folder)) as running:
        url, pids = running.ready["env"]["CHARTER_URL"], running.pids()
        body = {"jobType": "echo", "payload": {}, "idempotencyKey": "before"}
        kept = wait_until(lambda: ask(f"{url}/jobs", body), running)["jobId"]

        os.kill(pids["api"], signal.SIGKILL)
        wait_for_restart(running, "api")
        wait_until(lambda: ask(f"{url}/jobs/{kept}"), running)
        os.kill(pids["postgres"], signal.SIGKILL)
        wait_for_line(running, f"postgres: died of signal 9; {RESTARTED}")
        wait_until(lambda: ask(f"{url}/jobs/{kept}"), running)

        # Of several connections of the API some may still be broken when one works again.
        after = {"jobType": "echo", "payload": {}, "idempotencyKey": "after"}
        again = wait_until(lambda: ask(f"{url}/jobs", after), running)["jobId"]
        wait_until(lambda: (ask(f"{url}/jobs/{again}") or {}).get("status") == "COMPLETED", running)
        places = {line.partition(", ")[2] for line in lines_of(running, "postgres") if ": pid " in line}
        assert len(places) == 1
        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == (0, "")


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_server_is_restarted_as_it_was(kind: str, folder: Path) -> None:
    """A server that is killed answers again under the same address, with the same credentials."""
    told: list[str] = []
    server = KINDS[kind](folder / kind)
    await asyncio.to_thread(server.prepare)
    server.spawn()
    supervising = asyncio.create_task(Supervisor([ServerChild(kind, server)], 5, told.append, []).run())
    try:
        await asyncio.to_thread(server.wait)
        pid, url, variables = server.pid, server.url, server.variables
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            while server.pid in (None, pid) or not await asyncio.to_thread(answers, server):
                await asyncio.sleep(0.05)

        assert told[0] == f"{kind}: died of signal 9; {RESTARTED}"
        assert (server.url, server.variables) == (url, variables)
    finally:
        supervising.cancel()
        await asyncio.gather(supervising, return_exceptions=True)
        await asyncio.to_thread(server.stop)


def test_a_node_that_dies_at_every_start_is_given_up(tmp_path: Path) -> None:
    """After so many restarts it says why and goes on with the rest; the exit code tells of it in the end."""
    with up(tmp_path, MICROSERVICES, "--restarts", "2") as running:
        pids = running.pids()
        Path(running.ready["env"]["CHARTER_CA_FILE"]).with_name("result.crt").unlink()
        os.kill(pids.pop("result"), signal.SIGKILL)
        given_up = wait_for_line(running, "result: died with exit code 2 after 2 restarts")

        assert given_up.endswith("in a row and is given up; the rest goes on. Its last lines:")
        # Its last lines come after that one.
        wait_until(
            lambda: any("result.crt" in line and "settings_invalid" in line for line in running.told), running
        )
        assert [line.partition("; ")[2] for line in lines_of(running, "result") if "follows in" in line] == [
            "restart 1 of at most 2 in a row follows in 0.5 s",
            "restart 2 of at most 2 in a row follows in 1 s",
        ]
        assert not any(gone(pid) for pid in pids.values())
        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == (1, "")

    assert all(gone(pid) for pid in pids.values())


def test_it_ends_when_every_node_has_been_given_up(folder: Path) -> None:
    """Without a node there is nothing to keep up: the embedded server is stopped, exit code 1."""
    with up(
        *(folder, "orchestrator.local", "--workers", "0", "--restarts", "0"),
        CHARTER_DATA=str(folder),
    ) as running:
        pids = running.pids()
        os.kill(pids["api"], signal.SIGKILL)
        assert running.ended() == (1, "")

    assert "api: died of signal 9 and is given up; the rest goes on. Its last lines:" in running.told
    assert running.told[-1] == "Every node has been given up."
    assert all(gone(pid) for pid in pids.values())
