"""YAML writer: block style, indented lists, no anchors, quotes only where a text needs them.

The emitter of PyYAML took a third of the time of a whole run, so it is used only for unusual text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import yaml

_PLAIN = re.compile("[A-Za-z$](?:[A-Za-z0-9_./${}:-]*[A-Za-z0-9_./}-])?")
_RESERVED_WORDS = {"yes", "no", "true", "false", "on", "off", "null"}
"""Plain text that YAML parses as another type."""


def dump_documents(contents: Iterable[Mapping[str, Any]]) -> str:
    """Dump a stream of documents."""
    return "---\n".join("".join(f"{line}\n" for line in _format_lines(each)) for each in contents)


@lru_cache(maxsize=None, typed=True)
def dump_scalar(value: str | int | bool | None) -> str:
    """Dump a value on one line."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _RESERVED_WORDS:
        return value
    style = '"' if isinstance(value, str) and value.splitlines() not in ([], [value]) else None
    text: str = yaml.safe_dump(value, width=10**9, allow_unicode=True, default_style=style)
    return text.removesuffix("...\n").removesuffix("\n")


def _format_lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if _is_nested(inner):
                yield f"{dump_scalar(key)}:"
                yield from (f"  {line}" for line in _format_lines(inner))
            else:
                yield f"{dump_scalar(key)}: {_format_inline(inner)}"
        return
    for inner in value:
        first, *rest = _format_lines(inner) if _is_nested(inner) else [_format_inline(inner)]
        yield f"- {first}"
        yield from (f"  {line}" for line in rest)


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def _format_inline(value: Any) -> str:
    return "{}" if value == {} else "[]" if value in ([], ()) else dump_scalar(value)
