"""Environments of their own for the peers on Redis, made from PyPI and npm once and kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.peers.install import ROOT, STAMP, Environment, installed, run_installer

_HERE = Path(__file__).parent
_KEPT = ROOT / ".charter"
_NAMES = ("celery", "dramatiq", "huey", "rq", "saq", "taskiq", "taskiq-redis", "redis", "hiredis")
_ALONE = "arq"


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the programs of the peers are."""

    together: Environment
    alone: Environment
    node: tuple[str, str] | None
    """Node's own program and the folder with its packages, if this machine has Node."""

    def of(self, name: str) -> Environment:
        """The environment of a Python peer."""
        return self.alone if name == _ALONE else self.together

    def versions(self) -> Mapping[str, str]:
        """The versions of what is measured, as they are installed."""
        found = {**self.together.versions(_NAMES), **self.alone.versions((_ALONE,))}
        if self.node is not None:
            wanted = json.loads((_HERE / "package.json").read_text())
            found |= wanted["dependencies"]
        return found


def everything_installed() -> Peers:
    """All peers; BullMQ only where Node and npm are."""
    return Peers(
        installed(_KEPT / "redis-peers", _HERE / "requirements.txt"),
        installed(_KEPT / "redis-peers-arq", _HERE / "requirements-arq.txt"),
        _node(_KEPT / "redis-peers-node"),
    )


def _node(folder: Path) -> tuple[str, str] | None:
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
