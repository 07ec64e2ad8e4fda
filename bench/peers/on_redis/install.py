"""Environments of the peers on Redis, installed from PyPI and npm once and reused."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.peers.install import ROOT, STAMP, Environment, ensure_installed, run_installer

_HERE = Path(__file__).parent
_FOLDER = ROOT / ".charter"
_NAMES = ("celery", "dramatiq", "huey", "rq", "saq", "taskiq", "taskiq-redis", "redis", "hiredis")
_SEPARATE = "arq"


@dataclass(frozen=True, slots=True)
class PeerEnvironments:
    """The environments with the programs of the peers."""

    shared: Environment
    separate: Environment
    node: tuple[str, str] | None
    """The program of Node and the folder with its packages, if this machine has Node."""

    def select(self, name: str) -> Environment:
        """Select the environment of a Python peer."""
        return self.separate if name == _SEPARATE else self.shared

    def versions(self) -> Mapping[str, str]:
        """Read the installed versions of the peers."""
        versions = {**self.shared.versions(_NAMES), **self.separate.versions((_SEPARATE,))}
        if self.node is not None:
            wanted = json.loads((_HERE / "package.json").read_text())
            versions |= wanted["dependencies"]
        return versions


def ensure_all_installed() -> PeerEnvironments:
    """Install all peers that are missing; BullMQ only where Node and npm are."""
    return PeerEnvironments(
        ensure_installed(_FOLDER / "redis-peers", _HERE / "requirements.txt"),
        ensure_installed(_FOLDER / "redis-peers-arq", _HERE / "requirements-arq.txt"),
        _ensure_node_peer(_FOLDER / "redis-peers-node"),
    )


def _ensure_node_peer(folder: Path) -> tuple[str, str] | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    wanted = _HERE / "package.json"
    stamp, digest = folder / STAMP, hashlib.sha256(wanted.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(wanted, folder)
        run_installer([npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent"])
        stamp.write_text(digest)
    return node, str(folder)
