"""Look at the licence of every package that the service needs; one that nobody has vetted is told."""

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
"""Words of licences under which the service may be given to others together with the package."""
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?:\s*;\s*(.+?))?\s*\\?$", re.MULTILINE)


def main() -> int:
    """0 when every installed package that is locked has a vetted licence."""
    strange = []
    for name in locked((ROOT / "requirements-run.lock").read_text(encoding="utf-8")):
        try:
            said = licence(name)
        except PackageNotFoundError:
            print(f"{name}: not installed here")
            continue
        print(f"{name}: {said}")
        if not any(word in said.lower() for word in VETTED):
            strange.append(name)
    for name in strange:
        print(f"{name}: nobody has vetted its licence", file=sys.stderr)
    return 1 if strange else 0


def locked(text: str) -> list[str]:
    """The packages of a lock file that this machine needs."""
    found = []
    for name, _, marker in _LOCKED.findall(text):
        if not marker or Marker(marker).evaluate():
            found.append(name)
    return found


def licence(name: str) -> str:
    """What a package says of its licence, in the clearest of the three ways that there are."""
    about: Any = distribution(name).metadata
    classified = [each for each in about.get_all("Classifier") or [] if each.startswith("License ::")]
    named = "; ".join(each.rpartition(" :: ")[2] for each in classified if each.count(" :: ") > 1)
    return about.get("License-Expression") or named or (about.get("License") or "unknown").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
