"""Command line `nox -s bench -- report FOLDER`: render the page and pictures of stored results again."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.designs.findings import DesignFindings
from bench.report import page, tables

PEERS = tuple(f"{name}.json" for name in ("orchestrator", "priority"))
QUEUE = "queuey.json"
RESULTS_PAGE = Path(__file__).resolve().parents[1] / "RESULTS.md"


def main(arguments: list[str]) -> int:
    """Read the JSON files of a folder and write the page and pictures."""
    if len(arguments) != 1:
        print("usage: nox -s bench -- report FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    if (folder / QUEUE).exists():
        print(_rerender_queuey(folder / QUEUE))
        return 0
    found = [folder / each for each in PEERS if (folder / each).exists()]
    print(_rerender_peers(found[0]) if found else _rerender_designs(folder))
    return 0


def _rerender_designs(folder: Path) -> Path:
    """Write the page, the CSV files, and the tables of `RESULTS.md` if it shows the folder."""
    findings = DesignFindings.load(folder)
    tables.write_csv(findings, folder)
    if folder.resolve().parent == RESULTS_PAGE.parent / "results":
        RESULTS_PAGE.write_text(
            tables.fill_page(RESULTS_PAGE.read_text(encoding="utf-8"), folder.parent), encoding="utf-8"
        )
    return page.write_page(findings, folder)


def _rerender_peers(path: Path) -> Path:
    from bench.peers.findings import PeerFindings as Compared
    from bench.report import peers_page

    return peers_page.write_page(Compared.model_validate_json(path.read_text()), path.parent)


def _rerender_queuey(path: Path) -> Path:
    from bench.queuey import findings, page

    return page.write_page(findings.QueueyFindings.model_validate_json(path.read_text()), path.parent)
