"""Compare each contract checklist with the ids that tests carry, and list the ids without a test."""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESOLUTION_PREFIX = "CH"
_ID_LINE = re.compile(r"^- ([A-Z]+-[A-Z]?\d+):", re.MULTILINE)


@dataclass(frozen=True)
class Coverage:
    """The number of ids of one kind in a checklist, and those without a test."""

    total: int
    missing: list[str]


@dataclass(frozen=True)
class SystemReport:
    """Coverage of one `spec/<system>/requirements.md`."""

    system: str
    requirements: Coverage
    resolutions: Coverage

    @property
    def is_complete(self) -> bool:
        return not (self.requirements.missing or self.resolutions.missing)


@dataclass(frozen=True)
class Report:
    """The reports of all systems, and errors of the checklists or tests themselves."""

    systems: list[SystemReport]
    errors: list[str]


@dataclass
class _Checklists:
    by_system: dict[str, list[str]] = field(default_factory=dict)
    system_of: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Mark:
    requirement: str
    where: str


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the report; return 1 on an error or, with --strict, on an id without a test."""
    parser = argparse.ArgumentParser(prog="python -m scripts.conformance", description=__doc__)
    parser.add_argument("--system", help="report this system only (a folder under spec/)")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    parser.add_argument("--strict", action="store_true", help="exit 1 when an id has no test")
    options = parser.parse_args(argv)

    report = compare(root)
    systems = report.systems
    if options.system is not None:
        systems = [one for one in systems if one.system == options.system]
        if not systems:
            known = ", ".join(one.system for one in report.systems) or "none"
            parser.error(f"argument --system: {options.system!r} has no checklist (known: {known})")
    print(_format_json(systems, report.errors) if options.json else _format_text(systems))
    for error in report.errors:
        print(f"error: {error}", file=sys.stderr)
    incomplete = options.strict and not all(one.is_complete for one in systems)
    return 1 if report.errors or incomplete else 0


def compare(root: Path) -> Report:
    """Compare the checklists with the tests under root."""
    checklists = _read_checklists(root)
    marks, errors = _read_tests(root)
    errors = checklists.errors + errors
    errors += [
        f"{mark.where}: {mark.requirement} is in no spec/*/requirements.md"
        for mark in marks
        if mark.requirement not in checklists.system_of
    ]
    tested = {mark.requirement for mark in marks}
    systems = []
    for system, ids in checklists.by_system.items():
        resolutions = [one for one in ids if one.startswith(f"{RESOLUTION_PREFIX}-")]
        requirements = [one for one in ids if one not in set(resolutions)]
        systems.append(
            SystemReport(
                system, _compute_coverage(requirements, tested), _compute_coverage(resolutions, tested)
            )
        )
    return Report(systems, errors)


def format_ids(ids: Iterable[str]) -> str:
    """Format ids with runs of neighbours as ranges: TQ-001, TQ-003…TQ-007."""
    runs: list[list[str]] = []
    for one in ids:
        if runs and _follows(runs[-1][-1], one):
            runs[-1].append(one)
        else:
            runs.append([one])
    return ", ".join(f"{run[0]}…{run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def _follows(before: str, after: str) -> bool:
    (prefix, number), (next_prefix, next_number) = (_split_id(each) for each in (before, after))
    return prefix == next_prefix and number + 1 == next_number


def _split_id(requirement: str) -> tuple[str, int]:
    """Split `ORC-X07` into `ORC-X` and 7."""
    digits = requirement[len(requirement.rstrip("0123456789")) :]
    return requirement.removesuffix(digits), int(digits)


def _compute_coverage(ids: list[str], tested: set[str]) -> Coverage:
    return Coverage(total=len(ids), missing=[one for one in ids if one not in tested])


def _read_checklists(root: Path) -> _Checklists:
    found = _Checklists()
    for path in sorted(root.glob("spec/*/requirements.md")):
        system = path.parent.name
        text = path.read_text(encoding="utf-8")
        ids = found.by_system.setdefault(system, [])
        for match in _ID_LINE.finditer(text):
            requirement = match[1]
            if requirement in found.system_of:
                # A test names an id without its system, so an id has to be unique over all checklists.
                line = text.count("\n", 0, match.start()) + 1
                owner = found.system_of[requirement]
                where = f"{path.relative_to(root).as_posix()}:{line}"
                found.errors.append(f"{where}: {requirement} is already in the checklist of {owner}")
                continue
            found.system_of[requirement] = system
            ids.append(requirement)
    if not found.by_system:
        found.errors.append(f"{root}: there is no spec/*/requirements.md")
    return found


def _read_tests(root: Path) -> tuple[list[_Mark], list[str]]:
    marks: list[_Mark] = []
    errors: list[str] = []
    for path in sorted(root.glob("tests/**/*.py")):
        name = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError as error:
            errors.append(f"{name}:{error.lineno or 1}: cannot be parsed: {error.msg}")
            continue
        marks += _find_marks(tree, name)
    return marks, errors


def _find_marks(tree: ast.AST, name: str) -> Iterator[_Mark]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield _Mark(argument.value, f"{name}:{argument.lineno}")


def _format_text(systems: list[SystemReport]) -> str:
    lines = []
    for one in systems:
        for title, part in ((one.system, one.requirements), (f"{one.system} resolutions", one.resolutions)):
            lines.append(f"{title}: {part.total - len(part.missing)} of {part.total} ids have a test")
            if part.missing:
                lines.append(f"  without a test: {format_ids(part.missing)}")
    return "\n".join(lines)


def _format_json(systems: list[SystemReport], errors: list[str]) -> str:
    def part(coverage: Coverage) -> dict[str, object]:
        tested = coverage.total - len(coverage.missing)
        return {"total": coverage.total, "tested": tested, "missing": coverage.missing}

    rows = [
        {"system": one.system, "requirements": part(one.requirements), "resolutions": part(one.resolutions)}
        for one in systems
    ]
    return json.dumps({"systems": rows, "errors": errors}, indent=2)


if __name__ == "__main__":
    sys.exit(main())
