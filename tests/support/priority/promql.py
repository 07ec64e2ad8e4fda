"""The part of PromQL that alerts use, evaluated as Prometheus does: one value for each set of labels.

Selectors with matchers and `offset`, aggregations `by` labels, arithmetic, comparisons, `and`, `or` and
`unless`. Anything else is refused and never guessed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Value = Vector | float
Samples = Mapping[Labels, Sequence[tuple[float, float]]]
"""Series with their name as label `__name__`, and (second, value) of each in the order of time."""

LOOKBACK_S = 300.0
"""For how long the last sample of a series stands, unless it was said to be stale."""
STALE = float("inf")
"""The value that stands for the end of a series."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<duration>(?:\d+(?:ms|[smhdwy]))+)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<mark>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){},]))""",
    re.VERBOSE,
)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("or",),
    ("and", "unless"),
    ("==", "!=", "<=", "<", ">=", ">"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators, the weakest first."""
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
_AGGREGATIONS: Mapping[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "count": lambda values: float(len(values)),
}


class Unsupported(Exception):
    """Part of the language that this does not know."""


def evaluate(expression: str, samples: Samples, at: float) -> Value:
    """The value of an expression at a moment."""
    parser = _Parser(expression, samples, at)
    found = parser.level(0)
    if parser.token != ("", ""):
        raise Unsupported(f"{parser.token[1]!r} in {expression!r}")
    return found


def parse_seconds(text: str) -> float:
    """`1h30m` as seconds."""
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdwy])", text))


@dataclass
class _Parser:
    """Parses an expression from left to right and evaluates it at once."""

    expression: str
    samples: Samples
    at: float

    def __post_init__(self) -> None:
        self._tokens = [*_tokens(self.expression), ("", "")]
        self._position = 0

    @property
    def token(self) -> tuple[str, str]:
        return self._tokens[self._position]

    def level(self, number: int) -> Value:
        """Operators of one precedence, from left to right."""
        if number == len(_LEVELS):
            return self._operand()
        found = self.level(number + 1)
        while self.token[1] in _LEVELS[number] and self.token[0] in ("mark", "name"):
            found = _combine(self._next(), found, self.level(number + 1))
        return found

    def _operand(self) -> Value:
        kind, text = self.token
        if text == "-":
            self._next()
            return _combine("*", -1.0, self._operand())
        if text == "(":
            self._next()
            found = self.level(0)
            self._expect(")")
            return found
        if kind == "number":
            return float(self._next())
        if kind == "name" and text in _AGGREGATIONS:
            return self._aggregation()
        if kind == "name":
            return self._selector()
        raise Unsupported(f"{text!r} in {self.expression!r}")

    def _aggregation(self) -> Vector:
        combine = _AGGREGATIONS[self._next()]
        by = self._grouping()
        self._expect("(")
        inner = self.level(0)
        self._expect(")")
        by = self._grouping() if by is None else by
        if not isinstance(inner, dict):
            raise Unsupported("a number is not aggregated")
        groups: dict[Labels, list[float]] = {}
        for labels, value in inner.items():
            groups.setdefault(frozenset(each for each in labels if each[0] in (by or ())), []).append(value)
        return {labels: combine(values) for labels, values in groups.items()}

    def _grouping(self) -> list[str] | None:
        if self.token[1] in ("without", "on", "ignoring"):
            raise Unsupported(self.token[1])
        if self.token[1] != "by":
            return None
        self._next()
        self._expect("(")
        names = []
        while self.token[1] != ")":
            names.append(self._next())
            if self.token[1] == ",":
                self._next()
        self._expect(")")
        return names

    def _selector(self) -> Vector:
        name = self._next()
        if self.token[1] in ("(", "["):
            raise Unsupported(f"{name}{self.token[1]}")
        matchers = [("__name__", "=", name), *self._matchers()]
        before = 0.0
        if self.token[1] == "offset":
            self._next()
            before = parse_seconds(self._next())
        return _select(self.samples, matchers, self.at - before)

    def _matchers(self) -> Iterator[tuple[str, str, str]]:
        if self.token[1] != "{":
            return
        self._next()
        while self.token[1] != "}":
            name, how, text = self._next(), self._next(), self._next()
            yield name, how, text[1:-1]
            if self.token[1] == ",":
                self._next()
        self._expect("}")

    def _next(self) -> str:
        found = self.token[1]
        self._position += 1
        return found

    def _expect(self, symbol: str) -> None:
        if self._next() != symbol:
            raise Unsupported(f"{symbol!r} is missing in {self.expression!r}")


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    position, text = 0, expression.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise Unsupported(f"{text[position:]!r}")
        yield str(match.lastgroup), match[match.lastgroup or 0]
        position = match.end()


def _select(samples: Samples, matchers: Sequence[tuple[str, str, str]], at: float) -> Vector:
    found: Vector = {}
    for labels, series in samples.items():
        known = dict(labels)
        if all(_matches(known.get(name, ""), how, text) for name, how, text in matchers):
            past = [value for when, value in series if at - LOOKBACK_S < when <= at]
            if past and past[-1] != STALE:
                found[labels] = past[-1]
    return found


def _matches(value: str, how: str, text: str) -> bool:
    same = re.fullmatch(text, value) is not None if how.endswith("~") else value == text
    return same if how.startswith("=") else not same


def _combine(symbol: str, one: Value, other: Value) -> Value:
    """Two values with an operator between them; series with the same labels are matched."""
    if symbol in ("and", "or", "unless"):
        return _set_operation(symbol, one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        rest, right = _drop_names(one), _drop_names(other)
        pairs = {labels: (rest[labels], right[labels]) for labels in rest if labels in right}
    elif isinstance(one, dict) and not isinstance(other, dict):
        pairs = {labels: (value, other) for labels, value in one.items()}
    elif isinstance(other, dict) and not isinstance(one, dict):
        pairs = {labels: (one, value) for labels, value in other.items()}
    else:
        return _arithmetic(symbol, float(one), float(other))  # type: ignore[arg-type]
    if symbol in _COMPARISONS:
        selected = (0, 1)[not isinstance(one, dict)]
        is_true = _COMPARISONS[symbol]
        return {labels: pair[selected] for labels, pair in pairs.items() if is_true(*pair)}
    return {
        frozenset(each for each in labels if each[0] != "__name__"): _arithmetic(symbol, *pair)
        for labels, pair in pairs.items()
    }


def _set_operation(symbol: str, one: Value, other: Value) -> Vector:
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise Unsupported(f"a number beside {symbol!r}")
    right = _drop_names(other)
    inside = {labels for labels in one if _drop_name(labels) in right}
    if symbol == "or":
        rest = _drop_names(one)
        return one | {labels: value for labels, value in other.items() if _drop_name(labels) not in rest}
    return {labels: value for labels, value in one.items() if (labels in inside) == (symbol == "and")}


def _drop_names(vector: Vector) -> Vector:
    found = {_drop_name(labels): value for labels, value in vector.items()}
    if len(found) != len(vector):
        raise Unsupported("series that differ by nothing but their name")
    return found


def _drop_name(labels: Labels) -> Labels:
    return frozenset(each for each in labels if each[0] != "__name__")


def _arithmetic(symbol: str, one: float, other: float) -> float:
    match symbol:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "%":
            return one % other if other else nan
        case "/":
            return one / other if other else nan if one == 0 or isnan(one) else float("inf") * one
    raise Unsupported(symbol)
