"""Change records: valid ones, and the complaints about invalid ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from codegen import review
from codegen.review import COMPLAINTS, record_schema
from codegen.review.record import HEADER, ChangeRecord
from tests.support.codegen.review_project import BLOCKER, Project

GOOD = "system: locker\ntitle: T.\nwhat: W.\nwhy: Y.\nimpact: I.\n"


def expect_complaint(project: Project, *expected: str) -> None:
    """The review fails with each of the expected texts."""
    code, output = project.review("--check")
    assert code == 1
    for text in expected:
        assert text in output


def test_a_valid_record(accepted_project: Project) -> None:
    """A record with its three items is enough where nothing is frozen."""
    accepted_project.write_record("0002-good", GOOD)
    assert accepted_project.review("--check") == (0, "")


@pytest.mark.req("TQ-213")
@pytest.mark.parametrize("item", ["what", "why", "impact"])
def test_the_three_items_are_required(accepted_project: Project, item: str) -> None:
    """Without what, why or impact a record is refused at its first line."""
    accepted_project.write_record(
        "0002-short", "".join(line for line in GOOD.splitlines(True) if not line.startswith(item))
    )
    expect_complaint(
        accepted_project,
        f"spec/changes/0002-short.yaml:2:1: error E006: The key '{item}' is missing in the file.",
    )


@pytest.mark.req("TQ-214")
@pytest.mark.parametrize("item", sorted(BLOCKER))
def test_the_four_items_of_a_blocker_are_required(accepted_project: Project, item: str) -> None:
    """A blocker that lacks one of its four items is refused."""
    blocker = {name: text for name, text in BLOCKER.items() if name != item}
    accepted_project.record("0002-short", blocker=blocker)
    expect_complaint(accepted_project, f"error E006: The key '{item}' is missing in blocker.")


def test_an_unknown_key(accepted_project: Project) -> None:
    """A misspelt key is reported with its line, its column and the right spelling."""
    accepted_project.write_record("0002-typo", GOOD.replace("impact", "inpact"))
    expect_complaint(
        accepted_project,
        "spec/changes/0002-typo.yaml:6:1: error E004: The key 'inpact' is not part of the language here.",
        "    6 | inpact: I.\n        ^^^^^^\n  hint: Did you mean 'impact'?",
    )


def test_invalid_yaml(accepted_project: Project) -> None:
    """A file that is no YAML is reported as such."""
    accepted_project.write_record("0002-broken", "what: [")
    expect_complaint(accepted_project, "spec/changes/0002-broken.yaml:3:1: error E001: This is not YAML")


def test_invalid_utf_8(accepted_project: Project) -> None:
    """A file in another encoding is reported as such."""
    accepted_project.write_record("0002-latin", GOOD).write_bytes(b"what: caf\xe9")
    expect_complaint(accepted_project, "spec/changes/0002-latin.yaml:1:1: error E001: The file is not UTF-8")


@pytest.mark.parametrize("name", ["2-short", "0002", "0002-Upper", "0002_under"])
def test_an_invalid_name(accepted_project: Project, name: str) -> None:
    """A record is named by four digits and the words of its title."""
    accepted_project.write_record(name, GOOD)
    expect_complaint(
        accepted_project,
        f"spec/changes/{name}.yaml:1:1: error E901: '{name}.yaml' is no name for a change record.",
    )


def test_a_number_twice(accepted_project: Project) -> None:
    """Numbers count over all systems, and the hint has the next."""
    accepted_project.write_record("0001-another", GOOD)
    expect_complaint(
        accepted_project, "error E902: 0001 is already the number of 0001-a-locker.", "the next is 0002."
    )


def test_no_schema_on_the_first_line(accepted_project: Project) -> None:
    """Each record names its schema, so that editors check it."""
    accepted_project.write_record("0002-bare", GOOD, header="# A record.")
    expect_complaint(
        accepted_project, "spec/changes/0002-bare.yaml:1:1: error E903:", f"Begin with '{HEADER}'."
    )


def test_an_unknown_system(accepted_project: Project) -> None:
    """A record about an unknown system is reported with the likely one."""
    accepted_project.write_record("0002-lost", GOOD.replace("locker", "loker"))
    expect_complaint(
        accepted_project,
        "spec/changes/0002-lost.yaml:2:9: error E904: There is no system 'loker'.",
        "Did you mean 'locker'?",
    )


def test_a_record_lists_exactly_its_differences(accepted_project: Project) -> None:
    """An id that is no difference is reported at its line, with the likely one."""
    accepted_project.edit("environment", "unit: days, default: 7", "unit: days, default: 9")
    accepted_project.record("0002-shelf", "variable.default SHELF_DAY")
    expect_complaint(
        accepted_project,
        "error E906: 'variable.default SHELF_DAY' is no difference; a record names exactly what it covers.",
        "hint: Did you mean 'variable.default SHELF_DAYS'?",
        "variable.default SHELF_DAYS [not recorded]",
    )


def test_nothing_to_cover(accepted_project: Project) -> None:
    """Where there are no differences a list of them is refused."""
    accepted_project.record("0002-shelf", "variable.default SHELF_DAYS")
    expect_complaint(accepted_project, "error E906", "hint: There are no differences; leave the list empty.")


def test_a_difference_covered_twice(accepted_project: Project) -> None:
    """A difference belongs to one record."""
    accepted_project.edit("environment", "unit: days, default: 7", "unit: days, default: 9")
    accepted_project.record("0002-shelf", "variable.default SHELF_DAYS")
    accepted_project.record("0003-shelf-again", "variable.default SHELF_DAYS")
    expect_complaint(
        accepted_project, "error E907: 'variable.default SHELF_DAYS' is already covered by 0002-shelf."
    )


def test_an_entry_twice(accepted_project: Project) -> None:
    """An id stands once in the list of a record."""
    accepted_project.edit("environment", "unit: days, default: 7", "unit: days, default: 9")
    accepted_project.record("0002-shelf", "variable.default SHELF_DAYS", "variable.default SHELF_DAYS")
    expect_complaint(accepted_project, "error E009: 'variable.default SHELF_DAYS' is in this list twice.")


def test_a_question_resolved_twice(accepted_project: Project) -> None:
    """A question is resolved by one record."""
    accepted_project.record("0002-one", resolves=["CH-01", "CH-02"])
    accepted_project.record("0003-two", resolves=["CH-02"])
    expect_complaint(accepted_project, "error E908: CH-02 is already resolved by 0002-one.")


def test_an_accepted_record_may_not_be_lost(accepted_project: Project) -> None:
    """The accepted form depends on its records: none may be lost."""
    (accepted_project.root / "spec/changes/0001-a-locker.yaml").unlink()
    expect_complaint(
        accepted_project,
        "spec/accepted/locker.json:1:1: error E910: "
        "The accepted form of locker rests on 0001-a-locker, which is not in spec/changes.",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "spec/accepted/locker.json:1:2: error E909: This is no accepted form: Expecting property name"),
        ("{}", "spec/accepted/locker.json:1:1: error E909: This is no accepted form: KeyError 'records'."),
        ("[]", "spec/accepted/locker.json:1:1: error E909: This is no accepted form:"),
        ('{"system": {}, "records": []}', "error E909: This is no accepted form: name: Field required."),
    ],
)
def test_a_broken_accepted_form(accepted_project: Project, text: str, problem: str) -> None:
    """An accepted form that cannot be read is reported and never treated as an empty one."""
    (accepted_project.root / "spec/accepted/locker.json").write_text(text, encoding="utf-8")
    expect_complaint(accepted_project, problem)


def test_all_complaints_in_one_run(accepted_project: Project) -> None:
    """Several invalid records are reported in one run, in order."""
    accepted_project.write_record("0002-typo", GOOD.replace("why", "wy"))
    accepted_project.write_record("0003-lost", GOOD.replace("locker", "loker"))
    output = accepted_project.review("--check")[1]
    assert output.index("0002-typo") < output.index("0003-lost")
    assert output.rstrip().endswith("2 errors")


def test_every_code_is_in_the_catalogue() -> None:
    """The catalogue has each code that a review can give, with its meaning and both sides of it."""
    sources = [path for path in Path(review.__file__).parent.glob("*.py") if path.stem != "complaints"]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    used = set(re.findall(r'"(E9[0-9]{2})"', texts))
    assert used == {each.code for each in COMPLAINTS}
    assert all(each.meaning.endswith(".") and each.wrong != each.right for each in COMPLAINTS)


@pytest.mark.req("TQ-213")
def test_the_schema_is_that_of_the_model() -> None:
    """Editors require the three items and the four of a blocker, and refuse unknown keys."""
    schema = record_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    body: dict[str, Any] = {"system": "locker", "title": "T", "what": "W", "why": "Y", "impact": "I"}
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({**body, "blocker": BLOCKER, "covers": ["a b"], "resolves": ["CH-01"]})
    assert not validator.is_valid({**body, "colour": "red"})
    assert not validator.is_valid({**body, "blocker": {"scope": "S"}})
    assert not validator.is_valid({**body, "resolves": ["first"]})
    assert ChangeRecord.model_validate_json(json.dumps(body)).covers == ()
