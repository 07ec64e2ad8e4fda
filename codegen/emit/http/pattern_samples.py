"""Sample texts of regular expressions, for the examples of an OpenAPI document."""

from __future__ import annotations

import re
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_PREFERRED = "a0A_-. "


def generate_sample(pattern: str) -> str:
    """Generate a short text that matches, or an empty one where the expression is not a simple one."""
    found = "".join(_sample_node(each) for each in _parser.parse(pattern))
    return found if re.fullmatch(pattern, found) else ""


def _sample_node(node: tuple[Any, Any]) -> str:
    code, value = node
    if code is op.LITERAL:
        return chr(value)
    if code in (op.ANY, op.NOT_LITERAL):
        return "a" if value is None or value != ord("a") else "b"
    if code is op.IN:
        return _sample_set(value)
    if code in (op.MAX_REPEAT, op.MIN_REPEAT):
        least, _, inside = value
        return "".join(_sample_node(each) for each in inside) * int(least)
    if code is op.SUBPATTERN:
        return "".join(_sample_node(each) for each in value[3])
    if code is op.BRANCH:
        return "".join(_sample_node(each) for each in value[1][0])
    return ""


def _sample_set(choices: list[tuple[Any, Any]]) -> str:
    is_negated = choices[0][0] is op.NEGATE
    for letter in _PREFERRED + "bB1zZ":
        if any(_is_allowed(each, ord(letter)) for each in choices) != is_negated:
            return letter
    code, value = choices[0]
    return chr(value if code is op.LITERAL else value[0]) if not is_negated else ""


def _is_allowed(choice: tuple[Any, Any], letter: int) -> bool:
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
