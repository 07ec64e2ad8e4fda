"""JSON as text: read without losing anything of it, and checked before it is kept."""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Any, NoReturn

import orjson

DEEPEST = 100
"""How many objects and lists may stand in each other."""
LONGEST_NUMBER = 1000
"""Digits of a number. Databases keep more, but not without bound."""

_INEXACT = re.compile(rb"[\s:,\[](?:-0|-?[0-9]{19}|-?[0-9]{1,18}[.eE])")
"""Numbers that the fast reader may change. What only looks like one, inside a text, costs some time."""
_LONG = 19
_LONG_NUMBER = re.compile(rf"[0-9]{{{_LONG}}}")
_ODD_NUMBER = re.compile(r"[0-9][eE]|[0-9.]{300}")
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEPS = tuple(1 if each in b"[{" else -1 if each in b"]}" else 0 for each in range(256))
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_HALF = "must not have half of a surrogate pair"
_DEEP = f"must not be nested deeper than {DEEPEST} levels"


class NotJson(Exception):
    """Why a text cannot be read as JSON."""


class CannotWrite(Exception):
    """Why something that was read cannot be passed on as JSON."""


class Numeral(str):
    """A number that a float would change, as it was written."""

    __slots__ = ()


def read(body: bytes) -> Any:
    """What a JSON text says. Numbers that would not survive as such are numerals; the rest is as usual."""
    if _INEXACT.search(body) is None:
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            pass  # The other reader says where; half of a surrogate pair it takes, for its field to be named.
    try:
        return _exact(body.decode())
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None


def value_of(text: str) -> Any:
    """What a text says that is known to be JSON, with every whole number as it is."""
    # The fast reader makes a float of a number that is longer than this.
    if len(text) < _LONG or _LONG_NUMBER.search(text) is None:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # The other reader takes half of a surrogate pair as well.
    return json.loads(text)


def write(value: Any) -> str:
    """What `read` gave, or a part of it, as text; every number as it was written."""
    try:
        return orjson.dumps(value, default=_verbatim, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except orjson.JSONEncodeError as error:
        raise CannotWrite(_HALF if "surrogate" in str(error) else _DEEP) from None


def json_problem(text: str, *, must_be_object: bool = False, storable: bool = False) -> str:
    """What is wrong with a text that has to be JSON; nothing if it is empty."""
    kind = "must be a JSON object" if must_be_object else "must be JSON"
    if len(text) > DEEPEST and _depth(text) > DEEPEST:
        return _DEEP
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        # It reads neither half of a surrogate pair nor a number that is too large.
        try:
            value = _exact(text)
        except NotJson:
            return kind
        if not (problem := _number_problem(text)):
            return _HALF
        return problem
    if must_be_object and type(value) is not dict:
        return kind
    if storable and "\\u0000" in text and _NUL.search(text):
        return "must not contain the character NUL"
    return _number_problem(text) if _ODD_NUMBER.search(text) else ""


def _exact(text: str) -> Any:
    try:
        return _reader.decode(text)
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg[:1].lower()}{error.msg[1:]} (character {error.pos + 1})") from None


def _number(text: str) -> Numeral:
    return Numeral(text)


def _whole(text: str) -> int | Numeral:
    return int(text) if len(text) < 19 and text != "-0" else Numeral(text)


def _refused(text: str) -> NoReturn:
    raise NotJson(f"{text} is no number of JSON")


_reader = json.JSONDecoder(parse_float=_number, parse_int=_whole, parse_constant=_refused)


def _verbatim(value: Any) -> orjson.Fragment:
    if isinstance(value, Numeral):
        return orjson.Fragment(str(value))
    raise TypeError(type(value).__name__)


def _depth(text: str) -> int:
    """How deeply a text is nested. Few brackets cannot nest deeply, and then nothing is looked at."""
    if text.count("{") + text.count("[") <= DEEPEST:
        return 0
    outside = _TEXTS.sub(b"", text.encode())
    return max(accumulate(map(_STEPS.__getitem__, outside)), default=0)


class _TooLarge(Exception):
    """A number that not everyone who meets it can hold."""


def _number_problem(text: str) -> str:
    try:
        _bounded.decode(text)
    except _TooLarge as problem:
        return str(problem)
    return ""


def _bounded_number(text: str) -> float:
    if len(text) > LONGEST_NUMBER:
        raise _TooLarge(f"must not have a number of more than {LONGEST_NUMBER} digits")
    number = float(text)
    lost = number == 0 and any(each in "123456789" for each in re.split("[eE]", text)[0])
    if lost or math.isinf(number):
        raise _TooLarge("must not have a number that is out of the range of a double")
    return number


_bounded = json.JSONDecoder(parse_float=_bounded_number, parse_int=_bounded_number)
