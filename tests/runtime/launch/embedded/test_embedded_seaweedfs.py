"""The S3 server that comes along: real, on loopback, with a key, durable, and clean after every end."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from botocore.exceptions import ClientError

from runtime.launch.embedded import data_dir_lock
from runtime.launch.embedded import seaweedfs as embedded
from runtime.launch.embedded.ports import LOOPBACK
from runtime.launch.embedded.programs import EmbeddedError
from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from tests.support.eventually import wait_until
from tests.support.s3.fixtures import raw_client

ROOT = Path(__file__).parents[3]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedSeaweedfs]:
    made = EmbeddedSeaweedfs(tmp_path / "s3 data")
    made.start()
    yield made
    made.remove()


def test_the_credentials_are_required_and_nothing_is_left_behind(server: EmbeddedSeaweedfs) -> None:
    """Every port is on loopback, the key is hidden, and files that the program puts elsewhere are removed."""
    listening = [
        each.laddr
        for each in psutil.Process(server.pid).net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]
    assert len(listening) == 8 and {each.ip for each in listening} == {LOOPBACK}
    assert server.pid is not None
    shown = (
        Path(f"/proc/{server.pid}/cmdline").read_bytes() + Path(f"/proc/{server.pid}/environ").read_bytes()
    )
    assert server.secret_key.encode() not in shown and server.access_key.encode() not in shown
    assert (server.folder / "s3.json").stat().st_mode & 0o077 == 0
    assert server.folder.stat().st_mode & 0o077 == 0
    other = EmbeddedSeaweedfs(server.folder.with_name("other"))
    other.prepare()
    assert (other.access_key, other.secret_key) != (server.access_key, server.secret_key)
    other.port = server.port
    with closing(raw_client(other)) as stranger, pytest.raises(ClientError, match="InvalidAccessKeyId"):
        stranger.list_buckets()
    elsewhere = sockets(server.folder)
    assert len(elsewhere) == 4 and all(stat.S_ISSOCK(each.stat().st_mode) for each in elsewhere)
    server.remove()
    assert not server.folder.exists()
    assert not [each for each in elsewhere if each.exists()]


def test_data_and_key_outlive_a_killed_server(
    server: EmbeddedSeaweedfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was answered is there again, versions included, for another server in the same folder."""
    with closing(raw_client(server)) as there:
        there.create_bucket(Bucket="kept")
        there.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
        for number in range(100):
            there.put_object(Bucket="kept", Key=f"{number % 50:02}", Body=b"%d" % number)
        there.put_object(Bucket="kept", Key="large", Body=bytes(1 << 20))
    monkeypatch.setattr(data_dir_lock, "_PATIENCE", 0.1)
    with pytest.raises(EmbeddedError, match="in use by another server"):
        EmbeddedSeaweedfs(server.folder).start()
    server.kill()
    assert server.pid is None
    again = EmbeddedSeaweedfs(server.folder)
    try:
        again.start()
        assert again.secret_key == server.secret_key
        with closing(raw_client(again)) as there:
            versions = there.list_object_versions(Bucket="kept")["Versions"]
            assert len(versions) == 101
            assert there.get_object(Bucket="kept", Key="49")["Body"].read() == b"99"
            assert there.get_object(Bucket="kept", Key="large")["Body"].read() == bytes(1 << 20)
            there.put_object(Bucket="kept", Key="more", Body=b"")
    finally:
        again.stop()
    assert not again.running


def test_a_server_stops_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        "from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs\n"
        "server = EmbeddedSeaweedfs(Path(sys.argv[1])); server.start()\n"
        "print(server.pid, flush=True); time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "s3")], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    left = sockets(tmp_path / "s3")
    again = EmbeddedSeaweedfs(tmp_path / "s3")
    again.prepare()
    again.spawn()
    again.remove()
    assert not [each for each in left if each.exists()]


def test_the_reason_for_a_failed_start_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbeddedError, match=r"SeaweedFS cannot be started(.|\n)*no.such.setting"):
        EmbeddedSeaweedfs(tmp_path / "s3", settings={"no.such.setting": "1"}).start()
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedError, match="cannot be made"):
        EmbeddedSeaweedfs(tmp_path / "file" / "below").start()
    monkeypatch.setattr(embedded, "PACKAGE", "no-such-package")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(EmbeddedError, match=r"install charter\[embedded\]"):
        EmbeddedSeaweedfs(tmp_path / "s3").start()


def sockets(folder: Path) -> list[Path]:
    return [Path(each) for each in (folder / "sockets").read_text().split()]
