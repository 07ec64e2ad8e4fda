"""The page of the language: every key has a meaning and an example, and every example is in a spec."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import pytest
from pydantic import BaseModel, RootModel, ValidationError

from codegen.emit.docs import json_schema, language_page
from codegen.language import FILES
from codegen.language.environment import ENGINE_ROLES, TYPES, EngineRole, VariableType
from codegen.language.errors import ROLES, Role
from codegen.language.examples import (
    ELIDED,
    find_instances,
    has_gap,
    list_examples,
    list_excerpts,
    list_instances,
    list_names,
    list_parts,
)
from codegen.language.types import FieldRules, ItemRules, MessageField
from tests.support.codegen.specs import FOLDERS, spec

RIDDLES = re.compile(
    r"\b(anybody|anyone|bell|booked|nobody|no one|somebody|someone|tells?|told|whoever|whichever)\b",
    re.IGNORECASE,
)
"""Words that say less than the term of the field; see the glossary."""
PARTS = {
    part: file
    for file, model in reversed(FILES.items())
    for part in reversed(list_parts(model))
    if not issubclass(part, RootModel)
}
"""Every part with keys, and a file that has it."""


def list_keys(part: type[BaseModel]) -> dict[str, str]:
    """The keys of a part and their meanings."""
    return {field.alias or name: field.description or "" for name, field in part.model_fields.items()}


@cache
def list_spec_values() -> dict[type[BaseModel], list[dict[str, Any]]]:
    """What the specs have of each part, as far as it is written there."""
    found: dict[type[BaseModel], list[dict[str, Any]]] = defaultdict(list)
    for folder in FOLDERS:
        for file in FILES:
            for part in walk(getattr(spec(folder), file)):
                found[type(part)].append(part.model_dump(mode="json", by_alias=True, exclude_unset=True))
    return found


def walk(value: Any) -> Iterator[BaseModel]:
    if isinstance(value, RootModel):
        yield from walk(value.root)
    elif isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from walk(getattr(value, name))
    elif isinstance(value, dict | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from walk(each)


def is_shown_by(value: Any, example: Any) -> bool:
    """Whether an example is a value, or less than it: keys and values may be left out."""
    if example == ELIDED:
        return True
    if isinstance(example, dict):
        return isinstance(value, dict) and all(
            key in value and is_shown_by(value[key], each) for key, each in example.items()
        )
    if isinstance(example, list) and isinstance(value, list):
        kept = example[:-1] if example[-1:] == [ELIDED] else example
        is_cut = len(kept) < len(example)
        return (len(value) >= len(kept) if is_cut else len(value) == len(kept)) and all(
            map(is_shown_by, value, kept)
        )
    return bool(value == example) and type(value) is type(example)


def test_every_key_has_a_meaning() -> None:
    """A sentence, with its full stop."""
    assert [
        f"{file}.yaml: {part.__name__}.{key}"
        for part, file in PARTS.items()
        for key, meaning in list_keys(part).items()
        if not re.fullmatch(r"[A-Z`*].*\.", meaning, re.DOTALL)
    ] == []


@pytest.mark.parametrize(
    ("choices", "meanings"), [(Role, ROLES), (VariableType, TYPES), (EngineRole, ENGINE_ROLES)]
)
def test_every_role_and_type_has_a_meaning(choices: Any, meanings: dict[str, str]) -> None:
    assert list(meanings) == list(get_args(choices))
    assert not any(RIDDLES.search(text) for text in meanings.values())


def test_every_part_says_what_it_is() -> None:
    assert [part.__name__ for part in PARTS if not (part.__doc__ or "").strip().endswith(".")] == []


def test_no_meaning_is_a_riddle() -> None:
    texts = {f"{part.__name__}.{key}": text for part in PARTS for key, text in list_keys(part).items()}
    texts |= {part.__name__: part.__doc__ or "" for part in PARTS}
    assert {name: text for name, text in texts.items() if RIDDLES.search(text)} == {}


def test_every_key_has_an_example() -> None:
    assert [
        f"{file}.yaml: {part.__name__}.{key}"
        for part, file in PARTS.items()
        for key in list_keys(part)
        if not any(key in each for each in list_instances(part))
    ] == []


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_example_is_in_a_spec_that_passes_all_rules(part: type[BaseModel]) -> None:
    """All required keys are there, and all keys have the values of one place of a spec.

    An example with a key that no spec has is at least read by the model.
    """
    required = {field.alias or name for name, field in part.model_fields.items() if field.is_required()}
    used = {key for value in list_spec_values()[part] for key in value}
    for example in list_instances(part):
        assert required <= example.keys()
        if example.keys() <= used:
            assert any(is_shown_by(value, example) for value in list_spec_values()[part]), example
        else:
            shown = {key: value for key, value in example.items() if not has_gap(value)}
            assert list_problems(part, shown) <= {(key,) for key in example.keys() - shown.keys()}


def list_problems(part: type[BaseModel], value: dict[str, Any]) -> set[tuple[int | str, ...]]:
    """The paths at which a model does not read a value, as it would from a file."""
    try:
        part.model_validate_json(json.dumps(value))
    except ValidationError as error:
        return {each["loc"] for each in error.errors()}
    return set()


@pytest.mark.parametrize("part", [FieldRules, ItemRules])
def test_the_fields_of_rules_are_in_a_spec(part: type[BaseModel]) -> None:
    """Rules are shown with the field that they are about, whose type they have to fit."""
    for excerpt in list_excerpts(part):
        fields = find_instances(MessageField, excerpt.data)
        assert fields
        for field in fields:
            assert any(is_shown_by(value, field) for value in list_spec_values()[MessageField]), field


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_excerpt_shows_its_part(part: type[BaseModel]) -> None:
    """An excerpt under another key, or in the place of another part, shows nothing."""
    assert list_excerpts(part)
    for excerpt in list_excerpts(part):
        assert excerpt.data and not excerpt.text.startswith(" ")
        assert max(map(len, excerpt.text.splitlines())) <= 100


def test_no_excerpt_is_left_over() -> None:
    """The excerpts of a part that is gone go with it."""
    assert sorted(list_names()) == sorted(part.__name__ for part in PARTS)


@pytest.mark.parametrize(
    ("value", "example", "is_shown"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1, "b": 2}, {"a": 2}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"b": 1}}, {"a": ELIDED}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [1, 2]}, {"a": [1, ELIDED]}, True),
        ({"a": True}, {"a": 1}, False),
    ],
)
def test_an_example_is_less_than_a_value(value: Any, example: Any, is_shown: bool) -> None:
    assert is_shown_by(value, example) is is_shown


def test_the_page_has_every_part_with_its_example_once() -> None:
    (page,) = language_page.emit()
    for part in PARTS:
        for excerpt in list_excerpts(part):
            assert f"```yaml\n{excerpt.text}\n```" in page.text
    headings = re.findall(r"^##+ (.*)$", page.text, re.MULTILINE)
    assert len(headings) == len(set(headings))


def test_editors_show_meaning_and_examples_of_every_key() -> None:
    """The schemas have them, too; a value that the excerpt does not show is no example."""
    for artefact in json_schema.emit():
        name = artefact.path.rpartition("/")[2].removesuffix(".schema.json")
        for part in list_parts(FILES[name]) if name in FILES else ():
            if issubclass(part, RootModel):
                continue
            schema = json.loads(artefact.text)
            schema = schema if part is FILES[name] else schema["$defs"][part.__name__]
            for key, meaning in list_keys(part).items():
                shown = schema["properties"][key]
                assert shown["description"] == meaning
                assert shown.get("examples", []) == list_examples(part, key)
