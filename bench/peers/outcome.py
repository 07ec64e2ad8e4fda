"""What is done with the findings of a comparison: kept, shown, and judged."""

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
from bench.peers.findings import Findings, Sizes
from bench.peers.install import NotInstalled
from bench.peers.programs import Stuck
from bench.peers.run import Tell
from bench.peers.server import SqlFailed
from bench.report import peers_page, peers_tables
from runtime.embedded.programs import EmbeddedError

Options = Callable[..., Any]
RESULTS = Path(__file__).parents[1] / "results"


def options(function: Options) -> Options:
    """What every comparison can be told."""
    out = click.Path(file_okay=False, path_type=Path)
    for option in (
        click.option("--out", type=out, help="Where to write the report."),
        click.option("--rounds", type=int, help="How often everything is measured."),
        click.option("--quick", is_flag=True, help="A few minutes: fewer jobs, one round."),
    ):
        function = option(function)
    return function


def compared(measure: Callable[[Path, Tell], Findings], out: Path | None) -> int:
    """Measure, with a folder for logs, and keeps what was found; 1 if a goal is missed."""
    console = Console()

    def tell(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    try:
        with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
            found = measure(Path(folder), tell)
    except (EmbeddedError, NotInstalled, SqlFailed, Stuck) as error:
        raise click.ClickException(str(error)) from error
    return kept(found, console, out)


def circumstances(system: str, sizes: Sizes, *, quick: bool) -> dict[str, Any]:
    """What findings have to say of themselves; to be asked for before anything is measured."""
    return {
        "system": system,
        "stamp": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        "command": f"nox -s bench -- {shlex.join(sys.argv[1:])}",
        "commit": describe_commit(),
        "quick": quick,
        "machine": describe_host(),
        "sizes": sizes,
    }


def invoked(command: click.Command, arguments: list[str]) -> int:
    """Run a comparison by its command line; the exit code."""
    try:
        missed: int = command.main(
            arguments, prog_name=f"nox -s bench -- {command.name}", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return missed


def kept(found: Findings, console: Console, out: Path | None) -> int:
    """Write the numbers and the page, shows the tables, and names what was missed; 1 if anything was."""
    where = out or RESULTS / found.stamp
    where.mkdir(parents=True, exist_ok=True)
    text, name = found.model_dump_json(indent=1) + "\n", f"{found.system}.json"
    (where / name).write_text(text)
    if not found.quick:
        (RESULTS / name).write_text(text)
    for table in peers_tables.tables(found):
        console.print(table)
    console.print(f"Report: {peers_page.write(found, where)}", soft_wrap=True, highlight=False)
    for goal in found.missed:
        console.print(f"Missed: {peers_tables.told(goal)}", soft_wrap=True, highlight=False)
    if not found.missed:
        console.print("Every goal is met.")
    return int(bool(found.missed))
