"""The names in an expression of PromQL: which metrics it reads, and which labels it compares with what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    |(?P<number>0x[0-9a-fA-F]+|(?:\d+(?:ms|[smhdwy]))+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[a-zA-Z_][a-zA-Z0-9_:]*)
    |(?P<mark>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}\[\],@:])
    |(?P<space>\s+|\#[^\n]*)""",
    re.VERBOSE,
)
_GROUPING = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = frozenset({"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan", "start", "end"})


class Selector(NamedTuple):
    """A metric that is read, and the texts that its labels are compared with."""

    metric: str
    labels: tuple[tuple[str, str, str], ...]
    """Name, operator and text."""


class Token(NamedTuple):
    """A piece of an expression."""

    kind: str
    text: str


class NotPromQL(ValueError):
    """The text is no expression; says why."""


def selectors(expression: str) -> Iterator[Selector]:
    """Every metric that an expression reads."""
    tokens = _tokens(expression)
    _balanced(tokens)
    position = 0
    while position < len(tokens):
        kind, text = tokens[position]
        following = tokens[position + 1].text if position + 1 < len(tokens) else ""
        position += 1
        if kind != "name" or text.lower() in _WORDS:
            continue
        if text.lower() in _GROUPING:
            if following == "(":
                position = _closing(tokens, position, "(", ")") + 1
        elif following == "{":
            end = _closing(tokens, position, "{", "}")
            yield Selector(text, tuple(_labels(tokens[position + 1 : end])))
            position = end + 1
        elif following not in ("(", "by", "without"):
            yield Selector(text, ())


def _tokens(expression: str) -> list[Token]:
    found: list[Token] = []
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise NotPromQL(f"nothing begins with {expression[position : position + 12]!r}")
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match[0]))
        position = match.end()
    return found


def _balanced(tokens: list[Token]) -> None:
    """Raises if a bracket is open at the end, or closes none."""
    pairs, waiting = {")": "(", "]": "[", "}": "{"}, list[str]()
    for kind, text in tokens:
        if kind == "mark" and text in pairs.values():
            waiting.append(text)
        elif kind == "mark" and text in pairs and (not waiting or waiting.pop() != pairs[text]):
            raise NotPromQL(f"'{text}' closes nothing")
    if waiting:
        raise NotPromQL(f"'{waiting[-1]}' is never closed")
    if not tokens:
        raise NotPromQL("it is empty")


def _closing(tokens: list[Token], start: int, opening: str, closing: str) -> int:
    depth = 0
    for position in range(start, len(tokens)):
        depth += (tokens[position].text == opening) - (tokens[position].text == closing)
        if depth == 0:
            return position
    return len(tokens)


def _labels(tokens: list[Token]) -> Iterator[tuple[str, str, str]]:
    for name, operator, text in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (name.kind, operator.kind, text.kind) == ("name", "mark", "text"):
            yield name.text, operator.text, text.text[1:-1]
