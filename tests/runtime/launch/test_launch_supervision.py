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

from generated.studio.clients import DeskServiceClient
from generated.studio.messages import FindFilmRequest, HandInRequest, Order
from runtime.client import connect
from runtime.launch.embedded.kinds import KINDS
from runtime.launch.embedded.programs import EmbeddedError
from runtime.launch.embedded.server import EmbeddedServer
from runtime.launch.supervision import ServerChild, Supervisor
from tests.runtime.launch.test_launch import has_ended
from tests.runtime.launch.up import PATIENCE, Up, retry_call, up
from tests.support.eventually import eventually, wait_until
from tests.support.specs.neutral import environment

ROOMS = "studio.rooms"
Seen = TypeVar("Seen")
RESTARTED = "restart 1 of at most {} in a row follows in 0.5 s"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the user of the database may pass through."""
    with tempfile.TemporaryDirectory(prefix="charter-up-") as made:
        Path(made).chmod(0o711)
        yield Path(made)


def wait_while_running(look: Callable[[], Seen], running: Up) -> Seen:
    """Wait for anything but an empty value, as long as the launcher runs."""

    def look_at_both() -> tuple[Seen, list[str]]:
        found = look()
        assert found or running.process.poll() is None, running.errors
        return found, running.errors

    return wait_until(look_at_both, wanted=lambda seen: seen[0])[0]


def wait_for_line(running: Up, start: str) -> str:
    """Wait for a line of the launcher that starts so."""
    found = wait_while_running(lambda: [line for line in running.errors if line.startswith(start)], running)
    return found[0]


def wait_for_restart(running: Up, name: str) -> int:
    """Wait for the first restart of a process, of a node until it is ready; return its process id."""
    wait_while_running(lambda: sum(line.startswith(f"{name}: pid ") for line in running.errors) >= 2, running)
    log = running.logs / f"{name}.jsonl"
    wait_while_running(lambda: not log.exists() or log.read_text().count('"service_ready"') >= 2, running)
    return running.pids()[name]


def lines_of(running: Up, name: str) -> list[str]:
    """The lines of the launcher about one process, but for its health."""
    return [
        line
        for line in running.errors
        if line.startswith(f"{name}: ") and not line.endswith(("healthy", "stopped"))
    ]


async def develop_film(address: str, ca_file: str) -> None:
    """Hand a film in and wait for its end, also while nodes start."""
    async with connect("studio", address, ca_file=ca_file) as client:
        desk = client.of(DeskServiceClient)
        request = HandInRequest(order=Order(paper="any"))
        film_id = (await retry_call(lambda: desk.hand_in(request, client.call()))).film_id
        find = FindFilmRequest(film_id=film_id)
        await eventually(
            lambda: retry_call(lambda: desk.find_film(find, client.call())),
            wanted=lambda found: found.film.ended_at_ms,
        )


def is_up(server: EmbeddedServer) -> bool:
    """Whether a server is up; False also while a child of the killed one blocks it."""
    try:
        server.wait()
    except EmbeddedError:
        return False
    return True


def ask(url: str, body: object = None) -> Any:
    """Call the API of the orchestrator; None while it cannot answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError) and error.code < 500:
            raise
        return None


def test_an_api_and_a_database_that_are_killed_come_back_where_they_were(folder: Path) -> None:
    """Both have their port, password and data again: an old job exists, a new one runs."""
    with up(folder, "orchestrator.local", CHARTER_DATA=str(folder)) as running:
        url, pids = running.ready["env"]["CHARTER_URL"], running.pids()
        body = {"jobType": "echo", "payload": {}, "idempotencyKey": "before"}
        job_id = wait_while_running(lambda: ask(f"{url}/jobs", body), running)["jobId"]

        os.kill(pids["api"], signal.SIGKILL)
        wait_for_restart(running, "api")
        wait_while_running(lambda: ask(f"{url}/jobs/{job_id}"), running)
        os.kill(pids["postgres"], signal.SIGKILL)
        wait_for_line(running, f"postgres: died of signal 9; {RESTARTED.format(5)}")
        wait_while_running(lambda: ask(f"{url}/jobs/{job_id}"), running)

        # Of several connections of the API some may still be broken when one works again.
        after = {"jobType": "echo", "payload": {}, "idempotencyKey": "after"}
        again = wait_while_running(lambda: ask(f"{url}/jobs", after), running)["jobId"]
        wait_while_running(lambda: (ask(f"{url}/jobs/{again}") or {}).get("status") == "COMPLETED", running)
        places = {line.partition(", ")[2] for line in lines_of(running, "postgres") if ": pid " in line}
        assert len(places) == 1
        running.process.send_signal(signal.SIGTERM)
        assert running.wait_for_end() == (0, "")


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_server_is_restarted_as_it_was(kind: str, folder: Path) -> None:
    """A server that is killed answers again under the same address, with the same credentials."""
    lines: list[str] = []
    server = KINDS[kind](folder / kind)
    await asyncio.to_thread(server.prepare)
    server.spawn()
    supervising = asyncio.create_task(Supervisor([ServerChild(kind, server)], 5, lines.append, []).run())
    try:
        await asyncio.to_thread(server.wait)
        pid, url, variables = server.pid, server.url, server.variables
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

        async def is_back() -> bool:
            return server.pid not in (None, pid) and await asyncio.to_thread(is_up, server)

        await eventually(is_back, f"{kind} is up again", patience=PATIENCE)

        assert lines[0] == f"{kind}: died of signal 9; {RESTARTED.format(5)}"
        assert (server.url, server.variables) == (url, variables)
    finally:
        supervising.cancel()
        await asyncio.gather(supervising, return_exceptions=True)
        await asyncio.to_thread(server.stop)


def test_a_node_that_dies_is_restarted_and_given_up_if_it_dies_at_every_start(tmp_path: Path) -> None:
    """One line is logged for each death, and the others go on; a node that was given up makes exit code 1."""
    with up(tmp_path, ROOMS, "--restarts", "2", **environment()) as running:
        before = running.pids()
        os.kill(before["printer"], signal.SIGKILL)
        wait_for_restart(running, "printer")
        assert lines_of(running, "printer")[1] == f"printer: died of signal 9; {RESTARTED.format(2)}"
        variables = running.ready["env"]
        asyncio.run(develop_film(variables["CHARTER_ADDRESS"], variables["CHARTER_CA_FILE"]))
        pids = running.pids()
        assert {name for name in before if pids[name] != before[name]} == {"printer"}

        Path(variables["CHARTER_CA_FILE"]).with_name("archive.crt").unlink()
        os.kill(pids.pop("archive"), signal.SIGKILL)
        given_up = wait_for_line(running, "archive: died with exit code 2 after 2 restarts")

        assert given_up.endswith("in a row and is given up; the rest goes on. Its last lines:")
        # Its last lines come after that one.
        wait_while_running(
            lambda: any("archive.crt" in line and "settings_invalid" in line for line in running.errors),
            running,
        )
        assert [line.partition("; ")[2] for line in lines_of(running, "archive") if "follows in" in line] == [
            "restart 1 of at most 2 in a row follows in 0.5 s",
            "restart 2 of at most 2 in a row follows in 1 s",
        ]
        assert not any(has_ended(pid) for pid in pids.values())
        running.process.send_signal(signal.SIGTERM)
        assert running.wait_for_end() == (1, "")

    assert all(has_ended(pid) for pid in pids.values())


def test_it_ends_when_every_node_has_been_given_up(folder: Path) -> None:
    """Without a node there is nothing to keep up: the embedded server is stopped, exit code 1."""
    with up(
        *(folder, "orchestrator.local", "--workers", "0", "--restarts", "0"),
        CHARTER_DATA=str(folder),
    ) as running:
        pids = running.pids()
        os.kill(pids["api"], signal.SIGKILL)
        assert running.wait_for_end() == (1, "")

    assert "api: died of signal 9 and is given up; the rest goes on. Its last lines:" in running.errors
    assert running.errors[-1] == "Every node has been given up."
    assert all(has_ended(pid) for pid in pids.values())
