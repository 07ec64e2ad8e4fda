"""The shortest simple text that a regular expression matches, for the examples in documents."""

from __future__ import annotations

import re
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_PREFERRED = "a0A_-. "


def sample_of_pattern(pattern: str) -> str:
    """A text that matches, or nothing where the expression is beyond simple ones."""
    found = "".join(_sample(each) for each in _parser.parse(pattern))
    return found if re.fullmatch(pattern, found) else ""


def _sample(node: tuple[Any, Any]) -> str:
    code, value = node
    if code is op.LITERAL:
        return chr(value)
    if code in (op.ANY, op.NOT_LITERAL):
        return "a" if value is None or value != ord("a") else "b"
    if code is op.IN:
        return _one_of(value)
    if code in (op.MAX_REPEAT, op.MIN_REPEAT):
        least, _, inside = value
        return "".join(_sample(each) for each in inside) * int(least)
    if code is op.SUBPATTERN:
        return "".join(_sample(each) for each in value[3])
    if code is op.BRANCH:
        return "".join(_sample(each) for each in value[1][0])
    return ""


def _one_of(choices: list[tuple[Any, Any]]) -> str:
    refused = choices[0][0] is op.NEGATE
    for letter in _PREFERRED + "bB1zZ":
        if any(_allows(each, ord(letter)) for each in choices) != refused:
            return letter
    code, value = choices[0]
    return chr(value if code is op.LITERAL else value[0]) if not refused else ""


def _allows(choice: tuple[Any, Any], letter: int) -> bool:
    code, value = choice
    if code is op.LITERAL:
        return bool(letter == value)
    if code is op.RANGE:
        return bool(value[0] <= letter <= value[1])
    if code is op.CATEGORY:
        return {op.CATEGORY_DIGIT: chr(letter).isdigit(), op.CATEGORY_WORD: chr(letter).isalnum()}.get(
            value, False
        )
    return False
