"""The base spec of the review cases, and how they change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from codegen.review.compare import StoredForm, normalize
from codegen.review.form import Data, decode_form
from codegen.source.spec import Spec
from codegen.source.yaml_reader import parse
from tests.support import quick_yaml

Change = Callable[[Any, Any], None]
"""A change to a mapping or a list, at one of its keys."""

CASES = Path(__file__).parents[2] / "codegen" / "review"


@cache
def base() -> Data:
    """The base spec as plain data, like the accepted form; edits make another of it."""
    source, complaints = parse("base.yaml", (CASES / "base.yaml").read_text(encoding="utf-8"))
    assert not complaints
    data: Data = source.data
    return data


def spec(data: Data) -> Spec:
    return decode_form(data, "spec/kiosk")


@cache
def stored_base() -> StoredForm:
    """The side of a comparison that the base spec is."""
    return normalize(spec(base()))


def apply_edits(data: Data, edits: dict[str, Any]) -> Data:
    """The data with some places changed.

    `null` removes a thing, `{copy_of: path}` puts a copy there, and places in lists count from 0.
    """
    result = data
    for path, value in edits.items():
        copied = (
            find_at(data, value["copy_of"].split("/"))
            if isinstance(value, dict) and "copy_of" in value
            else value
        )
        result = change_at(result, path.split("/"), partial(_set, value=copied))
    return result


def change_at(data: Any, steps: Sequence[str | int], change: Change) -> Any:
    """The data with a change at a place; all the rest is the same object as before."""
    copied = data.copy()
    step = _step(copied, steps[0])
    if len(steps) > 1:
        copied[step] = change_at(
            copied[step] if isinstance(copied, list) else copied.get(step, {}), steps[1:], change
        )
    else:
        change(copied, step)
    return copied


def find_at(data: Any, steps: Iterable[str | int]) -> Any:
    """The value at a place."""
    for step in steps:
        data = data[_step(data, step)]
    return data


def _set(container: Any, step: str | int, value: Any) -> None:
    if value is None:
        del container[step]
    else:
        container[step] = value


def _step(container: Any, step: str | int) -> Any:
    return int(step) if isinstance(container, list) else step


def cases() -> list[Any]:
    """Every case: a list of mappings with `before` or `after` edits and the differences expected of them."""
    return [
        case
        for path in sorted((CASES / "cases").glob("*.yaml"))
        for case in quick_yaml.read(path.read_text(encoding="utf-8"))
    ]
