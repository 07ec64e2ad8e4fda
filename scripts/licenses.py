"""Check the licence of every package that the service needs, and report those that are not vetted."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.markers import Marker

ROOT = Path(__file__).resolve().parents[1]
VETTED = (
    "apache",
    "mit",
    "bsd",
    "isc",
    "psf",
    "python software foundation",
    "mpl",
    "unlicense",
    "zlib",
    "lgpl",
)
"""Words of licences under which the service may be distributed with the package."""
_LOCKED_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?:\s*;\s*(.+?))?\s*\\?$", re.MULTILINE)


def main() -> int:
    """Print the licences; return 0 if every installed package of the lock file has a vetted one."""
    unvetted = []
    for name in list_locked_packages((ROOT / "requirements-run.lock").read_text(encoding="utf-8")):
        try:
            licence = read_licence(name)
        except PackageNotFoundError:
            print(f"{name}: not installed here")
            continue
        print(f"{name}: {licence}")
        if not any(word in licence.lower() for word in VETTED):
            unvetted.append(name)
    for name in unvetted:
        print(
            f"{name}: its licence is not vetted; check it and add it to VETTED",
            file=sys.stderr,
        )
    return 1 if unvetted else 0


def list_locked_packages(text: str) -> list[str]:
    """List the packages of a lock file that this machine needs."""
    packages = []
    for name, _, marker in _LOCKED_PACKAGE.findall(text):
        if not marker or Marker(marker).evaluate():
            packages.append(name)
    return packages


def read_licence(name: str) -> str:
    """Read the licence of a package, from the clearest of three fields of its metadata."""
    metadata: Any = distribution(name).metadata
    classifiers = [each for each in metadata.get_all("Classifier") or [] if each.startswith("License ::")]
    named = "; ".join(each.rpartition(" :: ")[2] for each in classifiers if each.count(" :: ") > 1)
    return (
        metadata.get("License-Expression")
        or named
        or (metadata.get("License") or "unknown").partition("\n")[0]
    )


if __name__ == "__main__":
    sys.exit(main())
