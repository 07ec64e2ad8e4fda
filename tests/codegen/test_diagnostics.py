"""The texts of complaints: each folder in diagnostics/ changes a spec and has the exact output.

A folder has `change.diff` (hunks without line numbers, each under the name of its file), whole files that
replace the spec's, or both. The spec is the locker, or the one that the names of the hunks begin
with, as in `bakery/types.yaml`. CHARTER_UPDATE_GOLDEN=1 writes the expected output anew.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codegen.catalogue import render_catalogue
from codegen.diagnostics import Diagnostic, Place, render, suggest
from codegen.rules import RULES
from codegen.rules.lifecycle.due_transitions import check_due_components
from codegen.source.loader import examine
from tests.support import quick_yaml
from tests.support.codegen import specs
from tests.support.codegen.cached_loading import cached_files

HERE = Path(__file__).parent / "diagnostics"
SPECS = Path(__file__).parent.parent / "specs"
CASES = sorted(path.name for path in HERE.iterdir())
CHANGED = ("locker", "bakery", "rental", "laundry", "nursery")
STYLES = {"expected.txt": "text", "expected.json": "json", "expected.github.txt": "github"}


@pytest.fixture(scope="module", autouse=True)
def _cache_files() -> Iterator[None]:
    with cached_files():
        yield


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the specs, in which a case leaves no trace."""
    made = tmp_path_factory.mktemp("specs")
    for name in CHANGED:
        shutil.copytree(SPECS / name, made / name)
    return made


@pytest.mark.parametrize("case", CASES)
def test_output_is_exact(case: str, workplace: Path) -> None:
    """A faulty spec gets the complaints that its folder expects, word for word; one fault gets one.

    A folder that is named after a code has a single fault, and so a single complaint of that code.
    """
    complaints = examine_case(HERE / case, workplace)
    for file, style in STYLES.items():
        golden = HERE / case / file
        if file == "expected.txt" or golden.exists():
            output = render(complaints, style) + "\n"
            if os.environ.get("CHARTER_UPDATE_GOLDEN"):
                golden.write_text(output, encoding="utf-8")
            assert output == golden.read_text(encoding="utf-8")
    if case.startswith("E"):
        assert [each.code for each in complaints] == [case[:4]]


def test_every_code_has_a_folder() -> None:
    """No rule is without a golden test, and no folder is without a rule."""
    assert {case[:4] for case in CASES if case.startswith("E")} == {rule.code for rule in RULES}


@pytest.mark.parametrize("name", CHANGED)
def test_specs_are_clean(name: str) -> None:
    """The specs that the folders change have no complaint of their own."""
    assert examine(SPECS / name)[1] == []


def test_codes_are_unique() -> None:
    """No two rules have one code."""
    codes = [rule.code for rule in RULES]
    assert len(codes) == len(set(codes))


def test_catalogue_has_every_rule() -> None:
    """The catalogue has the meaning of each code and how it is done right."""
    text = render_catalogue()
    for rule in RULES:
        assert f"### {rule.code}\n\n{rule.meaning}" in text
        assert f"```yaml\n{rule.right}\n```" in text


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_examples_are_yaml(rule: object) -> None:
    """The examples of the catalogue are valid YAML, except the one for invalid YAML."""
    code, wrong, right = (getattr(rule, name) for name in ("code", "wrong", "right"))
    quick_yaml.read(right)
    if code not in ("E001",):
        quick_yaml.read(wrong)
    assert wrong != right


def test_meanings_are_sentences() -> None:
    """Each rule has a meaning in whole sentences."""
    assert all(re.fullmatch(r"[A-Z].*\.", rule.meaning) for rule in RULES)


def test_suggestion_ignores_case() -> None:
    """A name in the wrong case is recognised whatever else is similar."""
    assert suggest("enqueuejob", ["EnqueueJob", "Enqueue"]) == "Did you mean 'EnqueueJob'?"


def test_suggestion_lists_the_existing_names() -> None:
    """When nothing is close, the hint lists the existing names, but not endlessly."""
    assert suggest("zebra", ["a", "b"]) == "Known: a, b."
    assert suggest("zebra", [f"n{number:02}" for number in range(20)]).endswith("n11, ….")


def test_an_endless_line_is_cut() -> None:
    """Of a very long line only the part around the fault is printed, and the marker is still under it."""
    place = Place("a.yaml", 1, 5001, "x" * 5000 + "HERE" + "y" * 5000, 4)
    _, quotation, marker, *_ = render([Diagnostic(place, "E001", "Too long.")]).splitlines()
    assert len(quotation) < 200
    assert quotation[marker.index("^") :].startswith("HERE")


def test_a_sweeper_needs_the_store_of_its_entity() -> None:
    """A method to transition an entity is no help to a sweeper: it needs the store itself."""

    def unshare(data: Any) -> None:
        cake = data["entities"]["cake"]
        cake["shared_with"] = ["baker"]
        cake["driven_by"] = "CounterService.ForgetOrders"

    found = check_due_components.find(
        specs.change_spec(specs.spec("tests/specs/bakery"), "lifecycle", unshare)
    )
    assert [each.message for each in found] == [
        f"'{edge}' is driven by porter, which does not hold a cake." for edge in ("burn", "serve_again")
    ]


def examine_case(case: Path, workplace: Path) -> list[Diagnostic]:
    """The complaints about a spec with the changes of a folder."""
    diff = case / "change.diff"
    text = diff.read_text(encoding="utf-8") if diff.exists() else ""
    named = re.match(r"--- (\w+)/", text)
    spec = workplace / (named[1] if named else "locker")
    hunks = re.split(r"^(?=--- )", text, flags=re.M)[1:]
    replaced = [*case.glob("*.yaml")]
    with restored({spec / file.name for file in replaced} | {find_file(hunk, spec) for hunk in hunks}):
        for file in replaced:
            shutil.copy(file, spec)
        for hunk in hunks:
            apply(hunk, spec)
        return examine(spec, workplace)[1]


@contextmanager
def restored(files: set[Path]) -> Iterator[None]:
    """Put files back as they were; one that was not there is removed."""
    before = {file: file.read_bytes() if file.exists() else None for file in files}
    try:
        yield
    finally:
        for file, content in before.items():
            if content is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(content)


def find_file(hunk: str, spec: Path) -> Path:
    """The file that a hunk changes."""
    header = hunk.partition("\n")[0]
    return spec / header.removeprefix("--- ").removeprefix(f"{spec.name}/")


def apply(hunk: str, spec: Path) -> None:
    """Change a file by a hunk, or remove it if it is to become /dev/null."""
    file, lines = find_file(hunk, spec), hunk.rstrip("\n").split("\n")[1:]
    if lines == ["+++ /dev/null"]:
        file.unlink()
        return
    old, new = ("".join(f"{line[1:]}\n" for line in lines if line[:1] in side) for side in (" -", " +"))
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"the hunk must fit {file.name} in one place:\n{hunk}"
    file.write_text(text.replace(old, new), encoding="utf-8")
