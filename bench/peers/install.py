"""Virtual environment of the peers, installed from PyPI once and reused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).parent / "requirements.txt"
FOLDER = ROOT / ".charter" / "peers"
STAMP = "installed"
NAMES = ("asyncpg", "pgqueuer", "procrastinate", "psycopg", "uvloop")


class InstallFailed(Exception):
    """The peers cannot be installed; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The virtual environment with the programs of the peers."""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / ("Scripts" if os.name == "nt" else "bin") / name)

    def versions(self, names: Sequence[str] = NAMES) -> Mapping[str, str]:
        """Read the installed versions of packages."""
        found = subprocess.run(
            [self.program("python"), "-c", _VERSIONS, *names], capture_output=True, text=True, check=True
        )
        versions: dict[str, str] = json.loads(found.stdout)
        return versions


_VERSIONS = """
import importlib.metadata, json, sys
print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))
"""


def ensure_installed(folder: Path = FOLDER, requirements: Path = REQUIREMENTS) -> Environment:
    """Install the environment with uv, or else with pip, unless it is up to date."""
    found = Environment(folder)
    stamp, wanted = folder / STAMP, hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    python, options = found.program("python"), ["--requirement", str(requirements)]
    if uv := shutil.which("uv"):
        run_installer([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        run_installer([uv, "pip", "install", "--quiet", "--python", python, *options])
    else:
        run_installer([sys.executable, "-m", "venv", str(folder)])
        run_installer([python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *options])
    stamp.write_text(wanted)
    return found


def run_installer(command: list[str]) -> None:
    """Run a command that installs; raise with its last line if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise InstallFailed(f"The peers cannot be installed: {' '.join(said)}")
