"""The server that comes along: real, on loopback, with a password, and clean after every kind of end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from generated.orchestrator.system import SYSTEM
from runtime.launch.embedded.ports import LOOPBACK
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.programs import EmbeddedError, data_folder, find_unprivileged_user, is_reachable
from tests.support.eventually import wait_until

ROOT = Path(__file__).parents[4]
RIGHTS = "SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = current_user"


@pytest.fixture
def new_place(folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Where nothing is yet."""
    made = folder / request.node.name
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def prepared(folder: Path) -> Path:
    """A folder with an empty cluster, which takes longer to make than to copy."""
    EmbeddedPostgres(folder / "prepared").prepare()
    return folder / "prepared"


@pytest.fixture
def place(new_place: Path, prepared: Path) -> Path:
    """Where an empty cluster is."""
    subprocess.run(["cp", "-a", str(prepared), str(new_place)], check=True)
    return new_place


async def ask(url: str, text: str) -> Any:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    try:
        return await connection.fetchval(text)
    finally:
        await connection.close()


FORK_PROBE = """
import ctypes, pathlib, sys
from runtime.launch.embedded.postgres import EmbeddedPostgres

forks = []
handler = ctypes.CFUNCTYPE(None)(lambda: forks.append(1))
ctypes.CDLL(None).__register_atfork(handler, None, None, None)
EmbeddedPostgres(pathlib.Path(sys.argv[1])).prepare()
print(len(forks))
"""


def test_a_cluster_is_made_without_a_fork_handler(new_place: Path) -> None:
    """Handlers of libraries with threads, such as gRPC's, may abort the child before it is initdb."""
    done = subprocess.run(
        [sys.executable, "-c", FORK_PROBE, str(new_place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "0\n"


async def test_nodes_have_a_role_of_their_own(place: Path) -> None:
    """It owns nothing and may make nothing, after a restart as well; the owner has migrated before."""
    server = EmbeddedPostgres(place)
    server.start()
    try:
        url = await server.provision(SYSTEM, None)
        server.restart()
        assert await server.provision(SYSTEM, None) == url
        assert await ask(url, "SELECT current_user") == "charter_service"
        assert await ask(url, RIGHTS) is False
        assert await ask(url, "SELECT count(*) FROM pg_tables WHERE tableowner = current_user") == 0
        assert await ask(url, "SELECT count(*) FROM jobs") == 0
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await ask(url, "CREATE TABLE mine ()")
    finally:
        server.remove()


async def test_data_outlives_the_server(place: Path) -> None:
    server = EmbeddedPostgres(place)
    url = server.start()
    try:
        await ask(url, "CREATE TABLE kept ()")
        assert await ask(url, "SHOW fsync") == "on"
        assert await ask(url, "SHOW listen_addresses") == LOOPBACK
        assert await ask(url, "SHOW unix_socket_directories") == ""
    finally:
        server.stop()
    assert not server.running
    again = EmbeddedPostgres(place)
    try:
        assert await ask(again.start(), "SELECT to_regclass('kept')::text") == "kept"
    finally:
        again.stop()


async def test_nobody_gets_in_without_the_password(new_place: Path) -> None:
    server = EmbeddedPostgres(new_place)
    url = server.start()
    try:
        user, _, rest = url.removeprefix("postgresql://").partition(":")
        without = f"postgresql://{user}:wrong@{rest.partition('@')[2]}"
        with pytest.raises(asyncpg.InvalidPasswordError):
            await ask(without, "SELECT 1")
        assert (new_place / "password").stat().st_mode & 0o077 == 0
        assert new_place.stat().st_mode & 0o077 == 0
    finally:
        server.remove()
    assert not new_place.exists()


async def test_a_folder_has_one_server_at_a_time(place: Path) -> None:
    server, second = EmbeddedPostgres(place), EmbeddedPostgres(place)
    server.start()
    try:
        with pytest.raises(EmbeddedError, match="in use by another server"):
            second.start()
        assert await ask(server.url, "SELECT 1") == 1
    finally:
        server.remove()


async def test_a_killed_server_leaves_a_folder_that_can_be_used(place: Path) -> None:
    server = EmbeddedPostgres(place)
    await ask(server.start(), "CREATE TABLE kept ()")
    server.kill()
    again = EmbeddedPostgres(place)
    try:
        assert await ask(again.start(), "SELECT to_regclass('kept')::text") == "kept"
    finally:
        again.remove()


async def test_sessions_that_outlive_a_killed_server_are_waited_for(place: Path) -> None:
    """They notice within moments that it has gone, unless the machine gives them no time."""
    server = EmbeddedPostgres(place)
    session: asyncpg.Connection[Any] = await asyncpg.connect(server.start())
    os.kill(session.get_server_pid(), signal.SIGSTOP)
    server.kill()
    again = EmbeddedPostgres(place)

    def let_go() -> None:
        wait_until(lambda: "is still in use" in again.log.read_text())
        os.kill(session.get_server_pid(), signal.SIGCONT)

    refused = threading.Thread(target=let_go)
    refused.start()
    try:
        assert await ask(again.start(), "SELECT 1") == 1
    finally:
        again.remove()
        refused.join()
        session.terminate()


async def test_a_server_stops_when_its_parent_is_killed(place: Path) -> None:
    """In order, so that the next start finds nothing to recover."""
    script = (
        "import sys, time; from pathlib import Path\n"
        "from runtime.launch.embedded.postgres import EmbeddedPostgres\n"
        "server = EmbeddedPostgres(Path(sys.argv[1])); server.start(); print(server.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(place)], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    assert "database system is shut down" in (place / "server.log").read_text()
    again = EmbeddedPostgres(place)
    try:
        assert await ask(again.start(), "SELECT 1") == 1
    finally:
        again.remove()


def test_what_was_half_made_is_made_again(new_place: Path) -> None:
    (new_place / "making").mkdir(parents=True)
    (new_place / "making" / "junk").touch()
    server = EmbeddedPostgres(new_place)
    server.prepare()
    assert (new_place / "data" / "PG_VERSION").exists()
    assert not (new_place / "making").exists()


def test_a_folder_that_cannot_be_made_is_told(new_place: Path) -> None:
    new_place.touch()
    try:
        with pytest.raises(EmbeddedError, match="cannot be made"):
            EmbeddedPostgres(new_place / "below").prepare()
    finally:
        new_place.unlink()


def test_where_data_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHARTER_DATA", str(tmp_path))
    assert data_folder("some.thing") == tmp_path / "some.thing"
    monkeypatch.delenv("CHARTER_DATA")
    assert data_folder("some.thing").name == "some.thing"
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert not is_reachable(closed)
    assert find_unprivileged_user() == "" or os.geteuid() == 0
