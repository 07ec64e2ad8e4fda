"""No change of a spec is missed, whatever word of the language it touches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel, ValidationError

from codegen.language import FILES
from codegen.review.compare import find_differences, normalize
from codegen.review.form import Data, encode_form, flatten, spec_to_tree
from codegen.source.spec import Spec
from tests.support.codegen.review_forms import apply_edits, base, change_at, find_at, spec, stored_base

Steps = tuple[str | int, ...]


BASE = spec(base())
STORED: Data = json.loads(json.dumps(encode_form(BASE)))
REMOVED = object()
NAMES = ("extra", "EXTRA", "Extra")
LITERALS = (
    "none",
    "full",
    "fresh",
    "all",
    "bytes",
    "items",
    "GET",
    "never",
    "always",
    "anonymous",
    "ERROR",
    "secret",
)


@given(st.data())
def test_any_change_is_a_difference(data: st.DataObject) -> None:
    """Whatever is changed in the stored form, each changed value is reported by a kind that knows it."""
    now = STORED
    for _ in range(data.draw(st.integers(1, 3))):
        steps = data.draw(st.sampled_from(list(_list_places(now))))
        acts = data.draw(st.permutations([REMOVED, *NAMES, *_list_others(find_at(now, steps))]))
        mutants = (_mutate(now, steps, act) for act in acts)
        now = next((each for each in mutants if _parse_spec(each) is not None), now)
    new = _parse_spec(now)
    assert new is not None
    found = find_differences(stored_base(), normalize(new))
    assert bool(found) == (encode_form(new) != STORED)
    assert [each.id for each in found if each.kind == "other"] == []


def test_an_unknown_difference_is_reported_as_it_is() -> None:
    """Without any kind, every value that differs is still a difference of its own."""
    new = spec(
        apply_edits(base(), {"environment/variables/SEATS/default": 12, "types/public/messages/Hat": {}})
    )
    assert [
        (each.id, each.sentence) for each in find_differences(stored_base(), normalize(new), kinds=())
    ] == [
        ("other environment.variables.SEATS.default", "environment.variables.SEATS.default 10 -> 12"),
        ("other types.public.messages.Hat", "types.public.messages.Hat none -> {}"),
    ]


def test_the_base_spec_uses_every_word() -> None:
    """Each word of the language is used in base.yaml, so that the test above covers it."""
    unsaid: dict[str, set[str]] = {}
    for part in _list_parts(*(getattr(BASE, name) for name in FILES)):
        words = type(part).model_fields
        silent = {name for name in words if getattr(part, name) == words[name].default}
        unsaid[type(part).__name__] = unsaid.get(type(part).__name__, silent) & silent
    # Item rules are those of fields, and a word with a single value cannot be said otherwise.
    unsaid.pop("ItemRules")
    unsaid["FieldRules"] -= {"uuid", "uuid4"}
    unsaid["Entity"].discard("terminal_race")
    assert {name: words for name, words in unsaid.items() if words} == {}


def test_the_stored_form_is_complete() -> None:
    """Every value of the models that is not a default is in the stored form."""
    assert flatten(spec_to_tree(BASE)) == flatten(spec_to_tree(spec(STORED)))
    assert encode_form(spec(STORED)) == STORED


def _list_parts(*values: Any) -> Iterator[BaseModel]:
    for value in values:
        if isinstance(value, RootModel):
            yield from _list_parts(value.root)
        elif isinstance(value, BaseModel):
            yield value
            yield from _list_parts(*(getattr(value, name) for name in type(value).model_fields))
        elif isinstance(value, dict | tuple):
            yield from _list_parts(*(value.values() if isinstance(value, dict) else value))


def _list_places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    """Every place in the data below the eight files."""
    if len(steps) > 1:
        yield steps
    if isinstance(value, dict):
        for key in value:
            yield from _list_places(value[key], (*steps, key))
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _list_places(each, (*steps, index))


def _mutate(data: Data, steps: Steps, act: Any) -> Data:
    """The data with the value at a place removed, renamed, or replaced."""

    def change(container: Any, step: Any) -> None:
        if act is REMOVED:
            del container[step]
        elif act in NAMES and isinstance(container, dict):
            container[act] = container[step]
        else:
            container[step] = act

    mutant: Data = change_at(data, steps, change)
    return mutant


def _list_others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 2 + 3, max(value - 1, 0)]
    if isinstance(value, str):
        return [f"{value}x", f"{value}X", f"{value}_x", f"{value}_X", *LITERALS]
    return [value[::-1]] if isinstance(value, list) else []


def _parse_spec(data: Data) -> Spec | None:
    try:
        return spec(data)
    except ValidationError:
        return None
