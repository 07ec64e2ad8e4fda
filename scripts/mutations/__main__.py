"""Change the meaning of each word in each engine, in a copy, and say which suite finds it.

    python -m scripts.mutations [--own] [--engine redis] [--word backoff.max] [--write]

Each mutation runs the differential test of its engine, and the contract suite where that finds nothing. The
oracle of the copy keeps the semantics as they are.
"""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from scripts.mutations.mutation import Mutation
from scripts.mutations.postgres import POSTGRES
from scripts.mutations.redis import REDIS
from scripts.mutations.report import MutationOutcome, render_table, summarize
from scripts.mutations.semantics import NOTES, SEMANTICS, SHARED, STEPS
from scripts.mutations.tables import JSON, MEMORY, S3, SQLITE

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "decisions" / "0020-mutations-of-the-stores.md"
PARTS = ("runtime", "codegen", "tests", "generated", "proto", "scripts", "handlers", "spec", "pyproject.toml")
ORACLE = ("tests/support/stores/oracle.py", "tests/support/stores/differential/drawing.py")
OWN = {
    "memory": [*MEMORY, *STEPS, *NOTES, *SHARED],
    "json": [*JSON, *NOTES],
    "sqlite": [*SQLITE, *STEPS, *NOTES],
    "s3": [*S3, *NOTES],
    "redis": [*REDIS, *SHARED],
    "postgres": [*POSTGRES, *SHARED],
}
"""What an engine has of its own, and what all engines share beside the semantics."""
ENGINES = {name: [*own, *(SEMANTICS if name != "redis" else ())] for name, own in OWN.items()}
"""What is changed for each engine. PostgreSQL takes edges by the semantics where it has no statement."""
DIFFERENTIAL = {"s3": "s3-bucket"}
"""Where the sequences of an engine run, if it is another name than its own."""
SECONDS = 240
"""How long a suite may take. One that hangs has found something, too."""


class Job(NamedTuple):
    engine: str
    mutation: Mutation


@click.command()
@click.option("--engine", "engines", multiple=True, type=click.Choice(sorted(ENGINES)))
@click.option("--word", "words", multiple=True)
@click.option("--own", is_flag=True, help="leave out the semantics, which most engines share")
@click.option("--processes", default=os.cpu_count() or 1)
@click.option("--write", is_flag=True, help=f"write the table into {PAGE.name}")
def main(engines: Sequence[str], words: Sequence[str], own: bool, processes: int, write: bool) -> None:
    """Run the mutations and print what became of each."""
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for engine in engines or ENGINES:
        for mutation in (OWN if own else ENGINES)[engine]:
            if not words or mutation.word in words:
                jobs.put(Job(engine, mutation))
    outcomes: list[MutationOutcome] = []
    with tempfile.TemporaryDirectory(prefix="charter-mutations-") as folder:
        workers = [
            threading.Thread(target=_work, args=(Path(folder) / str(number), jobs, outcomes))
            for number in range(processes)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for line in summarize(outcomes):
        print(line)
    if write:
        render_table(PAGE, outcomes)
    raise SystemExit(any(each.found in ("", "stale") for each in outcomes))


def _work(root: Path, jobs: queue.SimpleQueue[Job], outcomes: list[MutationOutcome]) -> None:
    _copy(root)
    while not jobs.empty():
        try:
            engine, mutation = jobs.get_nowait()
        except queue.Empty:
            return
        path = root / mutation.path
        kept = path.read_text(encoding="utf-8")
        try:
            mutation.apply(root)
            found = _find(root, engine)
        except LookupError as error:
            print(error, flush=True)
            found = "stale"
        finally:
            path.write_text(kept, encoding="utf-8")
        outcomes.append(MutationOutcome(engine, mutation.word, mutation.title, found))
        print(f"{engine:8}  {mutation.word:24}  {found or 'SURVIVED':12}  {mutation.title}", flush=True)


def _copy(root: Path) -> None:
    """Copy the project, and give the oracle semantics of its own."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, root / part)
        else:
            shutil.copy(source, root / part)
    kept = root / "semantics_as_they_are"
    shutil.copytree(root / "runtime" / "stores" / "semantics", kept)
    for path in (*kept.glob("*.py"), *(root / each for each in ORACLE)):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("runtime.stores.semantics", kept.name), encoding="utf-8")


def _find(root: Path, engine: str) -> str:
    """Return the suite that finds the mutation of a copy; an empty text where none does."""
    for name, command in _list_suites(engine):
        try:
            ended = subprocess.run(
                [sys.executable, "-B", *command],
                cwd=root,
                env={**os.environ, "PYTHONPATH": str(root)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return name
        if ended.returncode:
            return name
    return ""


def _list_suites(engine: str) -> Iterator[tuple[str, list[str]]]:
    sequences = DIFFERENTIAL.get(engine, engine)
    share = ["--every", "4"] if engine == "postgres" else []
    package = "tests.support.stores.differential"
    yield "differential", ["-m", package, "--engine", sequences, "--seed", "0", "--quick", *share]
    pytest = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/stores"]
    yield "contract", [*pytest, "-k", f"{engine} and not differential"]


if __name__ == "__main__":
    main()
