"""Keys of the language with new names: an accepted form with the old ones means what it meant."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from codegen.language.renamed_keys import JOINED, RENAMED, rename_keys
from codegen.review.compare import compare
from codegen.review.form import decode_form
from tests.support.codegen.review_forms import base, spec
from tests.support.codegen.review_project import Project

RECORD = """system: locker
title: Keys have other names.
what: W.
why: Y.
impact: Names only.
covers: [words.renamed lifecycle]
"""
STAMPS = "        stamps: [stored_at_ms]\n"
TAKE = STAMPS + "        from_request: {waybill: {from: mover}}\n"
EXPECTED = "keys of lifecycle.yaml have new names and mean the same: takes -> from_request"


def make_old(data: Any) -> Any:
    """The same data with the old name of every key that was renamed, inner keys first."""
    old = deepcopy(data)
    for file, gone in JOINED.items():
        for place, keys in gone.items():
            _split_back(old[file], place.split("."), *keys)
    for file, places in RENAMED.items():
        for place, names in [*places.items()][::-1]:
            _rename_back(old[file], place.split("."), names)
    return old


def _rename_back(data: Any, place: list[str], names: dict[str, str]) -> None:
    if not isinstance(data, dict):
        return
    if place:
        for name in [*data] if place[0] == "*" else {place[0]} & {*data}:
            _rename_back(data[name], place[1:], names)
        return
    earlier = {new: old for old, new in names.items()}
    items = [(earlier.get(key, key), value) for key, value in data.items()]
    data.clear()
    data.update(items)


def _split_back(data: Any, place: list[str], old: str, new: str) -> None:
    if not isinstance(data, dict):
        return
    if place:
        for name in [*data] if place[0] == "*" else {place[0]} & {*data}:
            _split_back(data[name], place[1:], old, new)
    elif isinstance(data.get(new), list):
        data[new], data[old] = data[new]


def test_a_form_in_old_names_means_the_same() -> None:
    """A form with all keys of the language is equal in meaning and in text to that with the old names."""
    old = make_old(base())
    assert json.dumps(old) != json.dumps(base())
    renamed = {file: rename_keys(file, old[file]) for file in RENAMED}
    assert json.dumps(old) == json.dumps(base())
    assert compare(decode_form(old, "spec/kiosk"), spec(base())) == []
    names = {
        f"{old} -> {new}"
        for places in RENAMED.values()
        for row in places.values()
        for old, new in row.items()
    }
    names |= {f"{old} -> a list of {new}" for row in JOINED.values() for old, new in row.values()}
    assert {*renamed["lifecycle"]} == names


def test_names_of_the_spec_are_not_renamed() -> None:
    """A field, state or index that is called like an old key keeps its name, and so do keys of metrics."""
    data = {
        "entities": {
            "takes": {
                "kept_in": {"indexes": {"shown": {}}},
                "transitions": {"counts": {"sets": {"waits": 1}}},
            }
        }
    }
    before = json.dumps(data)
    assert rename_keys("lifecycle", data) == []
    assert rename_keys("metrics", {"metrics": {"seen_total": {"counts": {"on": ["task.create"]}}}}) == []
    assert json.dumps(data) == before


def test_the_review_says_names_only(project: Project) -> None:
    """An accepted form in old names differs from the spec in names alone; a record covers that."""
    project.edit("lifecycle", STAMPS, TAKE)
    project.accept_first()
    path, data = project.root / "spec/accepted/locker.json", project.accepted
    path.write_text(json.dumps(make_old(data)), encoding="utf-8")
    code, output = project.review()
    assert code == 1
    assert output.startswith(f"locker: 1 difference from its accepted form.\n\ncompatible\n  {EXPECTED}\n")
    project.write_record("0002-names", RECORD)
    assert project.review("--check") == (0, "")
    assert project.review("--accept")[0] == 0
    assert project.accepted == {**data, "records": [*data["records"], "0002-names"]}
    assert project.review() == (0, "locker: no differences from its accepted form.\n")


def test_a_revision_in_old_names_can_be_compared_with(project: Project) -> None:
    """A spec of a commit in which keys had other names differs in names alone."""
    project.edit("lifecycle", STAMPS, TAKE.replace("from_request", "takes"))
    project.git("init", "-q")
    project.commit()
    project.edit("lifecycle", "takes: {waybill", "from_request: {waybill")
    project.write_record("0001-names", RECORD)
    code, output = project.review("--base", "HEAD")
    assert code == 0
    assert EXPECTED in output
