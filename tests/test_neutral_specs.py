"""Engine tests use neutral systems: the engine knows no system by name, so a test of it needs none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHIPPED = {path.parent.name for path in ROOT.glob("handlers/*/__init__.py")}
"""The systems, and the job functions that some of them share."""
ENGINE = ROOT / "tests/runtime"
STORES = ENGINE / "stores"
"""The tests of store engines have shipped systems."""

EXCEPTIONS = {
    "cli/test_cli.py": "the commands of a deployment in which jobs last, fail and are cancelled",
    "cli/test_cli_options.py": "the options that each shipped spec gets, and the ends that count as failures",
    "worker/working.py": "leases in PostgreSQL, by the kit of the tests of that store",
    "worker/test_lease_worker.py": "leases in PostgreSQL, by the kit of the tests of that store",
    "worker/test_work_answers.py": "leases in PostgreSQL, by the kit of the tests of that store",
}
"""Modules that import a shipped system, and why."""


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{each.name}" for each in names)


def is_shipped(module: str) -> bool:
    package, _, rest = module.partition(".")
    return package in ("generated", "handlers") and rest.partition(".")[0] in SHIPPED


def test_no_engine_test_imports_a_shipped_system() -> None:
    """A module that no longer does is no exception any more."""
    found = {
        str(path.relative_to(ENGINE))
        for path in ENGINE.rglob("*.py")
        if STORES not in path.parents and any(map(is_shipped, imported_modules(path)))
    }
    assert found == EXCEPTIONS.keys()


def test_an_import_of_a_shipped_system_is_recognized(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(
        "from generated import taskqueue\nimport handlers.queuey.worker\nimport generated.studio\n"
    )
    assert [is_shipped(each) for each in imported_modules(path)] == [True, True, False]
