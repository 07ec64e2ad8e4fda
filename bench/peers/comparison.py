"""Command line of a comparison: its options, its run, and publishing of its findings."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bench.designs.manifest import describe_commit
from bench.machine import describe_host
from bench.peers.findings import PeerFindings, RunSizes
from bench.peers.install import InstallFailed
from bench.peers.programs import ProgramFailed
from bench.peers.rounds import PrintLine
from bench.peers.server import SqlFailed
from bench.report import peers_page, peers_tables
from runtime.launch.embedded.programs import EmbeddedError

Options = Callable[..., Any]
RESULTS = Path(__file__).parents[1] / "results"


def add_options(function: Options) -> Options:
    """Add the options that all comparisons have."""
    out = click.Path(file_okay=False, path_type=Path)
    for option in (
        click.option("--out", type=out, help="The folder for the report."),
        click.option("--rounds", type=int, help="Number of rounds."),
        click.option("--quick", is_flag=True, help="A few minutes: fewer jobs, one round."),
    ):
        function = option(function)
    return function


def run_comparison(measure: Callable[[Path, PrintLine], PeerFindings], out: Path | None) -> int:
    """Measure, with a folder for logs, and publish the findings; return 1 if a goal is missed."""
    console = Console()

    def print_line(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    try:
        with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
            found = measure(Path(folder), print_line)
    except (EmbeddedError, InstallFailed, SqlFailed, ProgramFailed) as error:
        raise click.ClickException(str(error)) from error
    return publish_findings(found, console, out)


def describe_run(system: str, sizes: RunSizes, *, quick: bool) -> dict[str, Any]:
    """Describe the run for its findings; to be called before the measurements."""
    return {
        "system": system,
        "stamp": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        "command": f"nox -s bench -- {shlex.join(sys.argv[1:])}",
        "commit": describe_commit(),
        "quick": quick,
        "machine": describe_host(),
        "sizes": sizes,
    }


def invoke(command: click.Command, arguments: list[str]) -> int:
    """Run a click command with these arguments; return its exit code."""
    try:
        missed: int = command.main(
            arguments, prog_name=f"nox -s bench -- {command.name}", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return missed


def publish_findings(found: PeerFindings, console: Console, out: Path | None) -> int:
    """Write the numbers and the page, and print the tables and missed goals; return 1 if there are any."""
    where = out or RESULTS / found.stamp
    where.mkdir(parents=True, exist_ok=True)
    text, name = found.model_dump_json(indent=1) + "\n", f"{found.system}.json"
    (where / name).write_text(text)
    if not found.quick:
        (RESULTS / name).write_text(text)
    for table in peers_tables.make_tables(found):
        console.print(table)
    console.print(f"Report: {peers_page.write_page(found, where)}", soft_wrap=True, highlight=False)
    for goal in found.missed:
        console.print(f"Missed: {peers_tables.format_goal(goal)}", soft_wrap=True, highlight=False)
    if not found.missed:
        console.print("Every goal is met.")
    return int(bool(found.missed))
