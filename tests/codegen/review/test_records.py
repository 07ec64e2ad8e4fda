"""Change records: what a good one says, and how a bad one is told off."""

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


def complaint(project: Project, *expected: str) -> None:
    """The review fails and says each of the expected things."""
    code, said = project.review("--check")
    assert code == 1
    for text in expected:
        assert text in said


def test_a_good_record(accepted: Project) -> None:
    """A record with its three items is enough where nothing is frozen."""
    accepted.write_record("0002-good", GOOD)
    assert accepted.review("--check") == (0, "")


@pytest.mark.req("TQ-213")
@pytest.mark.parametrize("item", ["what", "why", "impact"])
def test_the_three_items_are_required(accepted: Project, item: str) -> None:
    """Without what, why or impact a record is refused at its first line."""
    accepted.write_record(
        "0002-short", "".join(line for line in GOOD.splitlines(True) if not line.startswith(item))
    )
    complaint(
        accepted, f"spec/changes/0002-short.yaml:2:1: error E006: The key '{item}' is missing in the file."
    )


@pytest.mark.req("TQ-214")
@pytest.mark.parametrize("item", sorted(BLOCKER))
def test_the_four_items_of_a_blocker_are_required(accepted: Project, item: str) -> None:
    """A blocker that lacks one of its four items is refused."""
    blocker = {name: text for name, text in BLOCKER.items() if name != item}
    accepted.record("0002-short", blocker=blocker)
    complaint(accepted, f"error E006: The key '{item}' is missing in blocker.")


def test_an_unknown_key(accepted: Project) -> None:
    """A misspelt key is told with its line, its column and the right spelling."""
    accepted.write_record("0002-typo", GOOD.replace("impact", "inpact"))
    complaint(
        accepted,
        "spec/changes/0002-typo.yaml:6:1: error E004: The key 'inpact' is not part of the language here.",
        "    6 | inpact: I.\n        ^^^^^^\n  hint: Did you mean 'impact'?",
    )


def test_no_yaml(accepted: Project) -> None:
    """A file that is no YAML is told as such."""
    accepted.write_record("0002-broken", "what: [")
    complaint(accepted, "spec/changes/0002-broken.yaml:3:1: error E001: This is not YAML")


def test_no_utf_8(accepted: Project) -> None:
    """A file in another encoding is told as such."""
    accepted.write_record("0002-latin", GOOD).write_bytes(b"what: caf\xe9")
    complaint(accepted, "spec/changes/0002-latin.yaml:1:1: error E001: The file is not UTF-8")


@pytest.mark.parametrize("name", ["2-short", "0002", "0002-Upper", "0002_under"])
def test_a_bad_name(accepted: Project, name: str) -> None:
    """A record is named by four digits and the words of its title."""
    accepted.write_record(name, GOOD)
    complaint(
        accepted, f"spec/changes/{name}.yaml:1:1: error E901: '{name}.yaml' is no name for a change record."
    )


def test_a_number_twice(accepted: Project) -> None:
    """Numbers count over all systems, and the hint has the next."""
    accepted.write_record("0001-another", GOOD)
    complaint(accepted, "error E902: 0001 is already the number of 0001-a-locker.", "the next is 0002.")


def test_no_schema_on_the_first_line(accepted: Project) -> None:
    """Each record names its schema, so that editors check it."""
    accepted.write_record("0002-bare", GOOD, header="# A record.")
    complaint(accepted, "spec/changes/0002-bare.yaml:1:1: error E903:", f"Begin with '{HEADER}'.")


def test_an_unknown_system(accepted: Project) -> None:
    """A record about a system that nobody has is told with the likely one."""
    accepted.write_record("0002-lost", GOOD.replace("locker", "loker"))
    complaint(
        accepted,
        "spec/changes/0002-lost.yaml:2:9: error E904: There is no system 'loker'.",
        "Did you mean 'locker'?",
    )


def test_a_record_names_exactly_what_it_covers(accepted: Project) -> None:
    """An id that is no difference is told at its line, with the likely one."""
    accepted.edit("environment", "unit: days, default: 7", "unit: days, default: 9")
    accepted.record("0002-shelf", "variable.default SHELF_DAY")
    complaint(
        accepted,
        "error E906: 'variable.default SHELF_DAY' is no difference; a record names exactly what it covers.",
        "hint: Did you mean 'variable.default SHELF_DAYS'?",
        "variable.default SHELF_DAYS [not recorded]",
    )


def test_nothing_to_cover(accepted: Project) -> None:
    """Where there are no differences a list of them is told off."""
    accepted.record("0002-shelf", "variable.default SHELF_DAYS")
    complaint(accepted, "error E906", "hint: There are no differences; leave the list empty.")


def test_a_difference_covered_twice(accepted: Project) -> None:
    """A difference belongs to one record."""
    accepted.edit("environment", "unit: days, default: 7", "unit: days, default: 9")
    accepted.record("0002-shelf", "variable.default SHELF_DAYS")
    accepted.record("0003-shelf-again", "variable.default SHELF_DAYS")
    complaint(accepted, "error E907: 'variable.default SHELF_DAYS' is already covered by 0002-shelf.")


def test_an_entry_twice(accepted: Project) -> None:
    """An id stands once in the list of a record."""
    accepted.edit("environment", "unit: days, default: 7", "unit: days, default: 9")
    accepted.record("0002-shelf", "variable.default SHELF_DAYS", "variable.default SHELF_DAYS")
    complaint(accepted, "error E009: 'variable.default SHELF_DAYS' is in this list twice.")


def test_a_question_resolved_twice(accepted: Project) -> None:
    """A question is resolved by one record."""
    accepted.record("0002-one", resolves=["CH-01", "CH-02"])
    accepted.record("0003-two", resolves=["CH-02"])
    complaint(accepted, "error E908: CH-02 is already resolved by 0002-one.")


def test_an_accepted_record_is_kept(accepted: Project) -> None:
    """The accepted form rests on its records: none may be lost."""
    (accepted.root / "spec/changes/0001-a-locker.yaml").unlink()
    complaint(
        accepted,
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
def test_a_broken_accepted_form(accepted: Project, text: str, problem: str) -> None:
    """An accepted form that cannot be read is told as such and never taken for an empty one."""
    (accepted.root / "spec/accepted/locker.json").write_text(text, encoding="utf-8")
    complaint(accepted, problem)


def test_all_complaints_in_one_run(accepted: Project) -> None:
    """Several bad records are told together, in order."""
    accepted.write_record("0002-typo", GOOD.replace("why", "wy"))
    accepted.write_record("0003-lost", GOOD.replace("locker", "loker"))
    said = accepted.review("--check")[1]
    assert said.index("0002-typo") < said.index("0003-lost")
    assert said.rstrip().endswith("2 errors")


def test_every_code_is_in_the_catalogue() -> None:
    """The catalogue has each code that a review can give, with its meaning and both sides of it."""
    sources = [path for path in Path(review.__file__).parent.glob("*.py") if path.stem != "complaints"]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    used = set(re.findall(r'"(E9[0-9]{2})"', texts))
    assert used == {each.code for each in COMPLAINTS}
    assert all(each.meaning.endswith(".") and each.wrong != each.right for each in COMPLAINTS)


@pytest.mark.req("TQ-213")
def test_the_schema_is_that_of_the_model() -> None:
    """Editors ask for the three items and the four of a blocker, and refuse unknown keys."""
    schema = record_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    body: dict[str, Any] = {"system": "locker", "title": "T", "what": "W", "why": "Y", "impact": "I"}
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({**body, "blocker": BLOCKER, "covers": ["a b"], "resolves": ["CH-01"]})
    assert not validator.is_valid({**body, "colour": "red"})
    assert not validator.is_valid({**body, "blocker": {"scope": "S"}})
    assert not validator.is_valid({**body, "resolves": ["first"]})
    assert ChangeRecord.model_validate_json(json.dumps(body)).covers == ()
