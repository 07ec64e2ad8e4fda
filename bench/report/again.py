"""`nox -s bench -- report FOLDER`: makes the page and pictures of earlier results anew."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.designs.findings import Findings
from bench.report import page


def main(arguments: list[str]) -> int:
    """Reads the JSON files of a folder and writes the rest."""
    if len(arguments) != 1:
        print("usage: nox -s bench -- report FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    print(page.write(Findings.load(folder), folder))
    return 0
