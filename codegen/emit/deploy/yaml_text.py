"""YAML as people write it: in blocks, lists indented, nothing shared, quotes only where text needs them.

The library's own emitter took a third of the time of a whole run, so it is asked only about unusual text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import yaml

_PLAIN = re.compile("[A-Za-z$](?:[A-Za-z0-9_./${}:-]*[A-Za-z0-9_./}-])?")
_WORDS = {"yes", "no", "true", "false", "on", "off", "null"}
"""Text that would be read as something else."""


def documents(found: Iterable[Mapping[str, Any]]) -> str:
    """A stream of documents."""
    return "---\n".join("".join(f"{line}\n" for line in _lines(each)) for each in found)


@lru_cache(maxsize=None, typed=True)
def scalar(value: str | int | bool | None) -> str:
    """A value on one line."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    style = '"' if isinstance(value, str) and value.splitlines() not in ([], [value]) else None
    text: str = yaml.safe_dump(value, width=10**9, allow_unicode=True, default_style=style)
    return text.removesuffix("...\n").removesuffix("\n")


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if _nests(inner):
                yield f"{scalar(key)}:"
                yield from (f"  {line}" for line in _lines(inner))
            else:
                yield f"{scalar(key)}: {_flat(inner)}"
        return
    for inner in value:
        first, *rest = _lines(inner) if _nests(inner) else [_flat(inner)]
        yield f"- {first}"
        yield from (f"  {line}" for line in rest)


def _nests(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def _flat(value: Any) -> str:
    return "{}" if value == {} else "[]" if value in ([], ()) else scalar(value)
