"""The words and the rooms, as far as a machine can keep them."""

from __future__ import annotations

import ast
import re
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST_SPEC_LINE = 110
MOST_MODULES = 15
"""In one folder of code that people write."""

KEPT = ("bench/", "codegen/", "handlers/", "runtime/", "scripts/")
MODELS = "codegen/language/"
"""The models of the spec language. The runtime's tables of the same things have the same names."""
UNUSED = frozenset(
    [
        "anybody",
        "bell",
        "booked",
        "bury",
        "calm",
        "desk",
        "fitting",
        "holding",
        "holdings",
        "nobody",
        "pace",
        "ring",
        "somebody",
        "stir",
        "sweeping",
        "tell",
        "telling",
        "tells",
        "told",
        "upkeep",
        "whoever",
        "wish",
        "wishes",
    ]
)
"""Words that say less than the term of the field: wake-up, lease, in flight, due transition, log, view."""
PUBLIC = {"runtime/call/context.py": {"tell", "tell_all"}}
"""Names that handlers use."""

PLAIN = (
    "runtime/cli/",
    "runtime/model/",
    "runtime/stores/history/",
    "runtime/stores/layouts/",
    "runtime/stores/postgres/",
    "runtime/stores/s3/",
    "runtime/transport/",
)
"""Folders whose docstrings begin with the term of the field."""
RIDDLE = re.compile(
    r'^\s*"""(?:What|Whoever|Where|How|For how|After how)\b|\b(?i:told|tells|whoever|nobody|somebody)\b'
)
"""A docstring that begins as a question, or a person where a process, a caller or an owner is meant."""

OF_ONE_NAME = {
    "Channel": "what a client calls through, and the connection of the carrier `direct`",
    "Client": "the public one, and the calling side of each carrier",
    "Connection": "of asyncpg in a signature, and of a client over HTTP",
    "Health": "the health service of each carrier",
    "Job": "the argument of a job function, and the component of the taskqueue",
    "Keepalive": "its settings, and the carrier's part that acts on them",
    "Limits": "of a sandbox, and of an HTTP/2 connection",
    "Node": "its table, and the running one",
    "Producer": "of two systems",
    "Queue": "the component of three systems",
    "Reflection": "the reflection service of each carrier",
    "Server": "the serving side of each carrier",
    "Span": "of time on a command line, and of a trace",
    "Worker": "the component of four systems",
}
"""Public classes that share a name, and why; there shall be no more of them."""


@cache
def tracked(*patterns: str) -> tuple[str, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(each for each in listed.stdout.splitlines() if (ROOT / each).exists())


@cache
def parse(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def modules() -> tuple[str, ...]:
    """The modules that people write."""
    return tuple(each for each in tracked("*.py") if not each.startswith("generated/"))


def kept_modules() -> tuple[str, ...]:
    return tuple(each for each in modules() if each.startswith(KEPT))


def defined(path: str) -> Iterator[str]:
    """The name of a module, and of each class and function in it."""
    yield Path(path).stem
    for each in ast.walk(parse(path)):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name


def words(name: str) -> set[str]:
    return set(re.sub(r"([A-Z])", r"_\1", name).lower().split("_"))


def test_no_name_has_a_word_that_nobody_would_search_for() -> None:
    found = {
        f"{path}: {name}"
        for path in kept_modules()
        for name in defined(path)
        if words(name) & UNUSED and name not in PUBLIC.get(path, ())
    }
    assert found == set()


def test_no_docstring_begins_with_a_riddle() -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in kept_modules()
        if path.startswith(PLAIN)
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if RIDDLE.search(line)
    ]
    assert found == []


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(set)
    for path in kept_modules():
        if path.startswith(MODELS):
            continue
        for each in ast.walk(parse(path)):
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                places[each.name].add(path)
    assert {name for name, paths in places.items() if len(paths) > 1} == set(OF_ONE_NAME)


def begins_with_text(path: str) -> bool:
    """Whether a text is the first thing in a module, which takes no parsing of the rest of it."""
    with (ROOT / path).open("rb") as file:
        skipped = {tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE}
        return next(each.type for each in tokenize.tokenize(file.readline) if each.type not in skipped) == (
            tokenize.STRING
        )


def test_every_module_says_what_it_is() -> None:
    assert [each for each in modules() if (ROOT / each).stat().st_size and not begins_with_text(each)] == []


def test_no_folder_has_too_many_modules() -> None:
    counts: dict[str, int] = defaultdict(int)
    for each in modules():
        counts[str(Path(each).parent)] += Path(each).name != "__init__.py"
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


@pytest.mark.parametrize("path", tracked("spec/*/*.yaml", ":!spec/changes"))
def test_lines_of_specs_can_be_read(path: str) -> None:
    lines = (ROOT / path).read_text().splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > LONGEST_SPEC_LINE] == []
