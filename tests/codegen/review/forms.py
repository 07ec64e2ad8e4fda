"""The spec that the cases change, and how they change it."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from codegen.review.form import Data, read
from codegen.source import parse
from codegen.spec import Spec

HERE = Path(__file__).parent


def base() -> Data:
    """The base spec as plain data, the way the accepted form has it."""
    return copy.deepcopy(_base())


@cache
def _base() -> Data:
    source, complaints = parse("base.yaml", (HERE / "base.yaml").read_text(encoding="utf-8"))
    assert not complaints
    data: Data = source.data
    return data


def spec(data: Data) -> Spec:
    return read(data, "spec/kiosk")


def edited(data: Data, edits: dict[str, Any]) -> Data:
    """The data with some places changed.

    `null` takes a thing away, `{copy_of: path}` puts a copy there, and places in lists count from 0.
    """
    result = copy.deepcopy(data)
    for path, value in edits.items():
        *outer, last = path.split("/")
        holder = _at(result, outer, grow=True)
        key = int(last) if isinstance(holder, list) else last
        if value is None:
            del holder[key]
        elif isinstance(value, dict) and "copy_of" in value:
            holder[key] = copy.deepcopy(_at(data, value["copy_of"].split("/")))
        else:
            holder[key] = value
    return result


def _at(data: Any, steps: list[str], *, grow: bool = False) -> Any:
    for step in steps:
        if isinstance(data, list):
            data = data[int(step)]
        else:
            data = data.setdefault(step, {}) if grow else data[step]
    return data


def cases() -> list[Any]:
    """Every case: a list of mappings with `before` or `after` edits and the differences expected of them."""
    return [
        case
        for path in sorted((HERE / "cases").glob("*.yaml"))
        for case in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]
