"""The spec that the cases change, and how they change it."""

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
"""What is done to a mapping or a list, at one of its keys."""

CASES = Path(__file__).parents[2] / "codegen" / "review"


@cache
def base() -> Data:
    """The base spec as plain data, the way the accepted form has it; edits make another of it."""
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


def edited(data: Data, edits: dict[str, Any]) -> Data:
    """The data with some places changed.

    `null` takes a thing away, `{copy_of: path}` puts a copy there, and places in lists count from 0.
    """
    result = data
    for path, value in edits.items():
        said = (
            at(data, value["copy_of"].split("/")) if isinstance(value, dict) and "copy_of" in value else value
        )
        result = changed(result, path.split("/"), partial(_put, value=said))
    return result


def changed(data: Any, steps: Sequence[str | int], change: Change) -> Any:
    """The data with a change at a place; it shares all the rest with the data that was given."""
    copied = data.copy()
    step = _step(copied, steps[0])
    if len(steps) > 1:
        copied[step] = changed(
            copied[step] if isinstance(copied, list) else copied.get(step, {}), steps[1:], change
        )
    else:
        change(copied, step)
    return copied


def at(data: Any, steps: Iterable[str | int]) -> Any:
    """What is at a place."""
    for step in steps:
        data = data[_step(data, step)]
    return data


def _put(holder: Any, step: str | int, value: Any) -> None:
    if value is None:
        del holder[step]
    else:
        holder[step] = value


def _step(holder: Any, step: str | int) -> Any:
    return int(step) if isinstance(holder, list) else step


def cases() -> list[Any]:
    """Every case: a list of mappings with `before` or `after` edits and the differences expected of them."""
    return [
        case
        for path in sorted((CASES / "cases").glob("*.yaml"))
        for case in quick_yaml.read(path.read_text(encoding="utf-8"))
    ]
