"""Lossless JSON: decode without losing precision, and check texts before they are stored."""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Any, NoReturn

import orjson

DEEPEST = 100
"""Max nesting depth."""
LONGEST_NUMBER = 1000
"""Max digits of a number. Databases take more, but not without bound."""

_INEXACT = re.compile(rb"[\s:,\[](?:-0|-?[0-9]{19}|-?[0-9]{1,18}[.eE])")
"""Numbers that orjson may round. A match inside a string only costs some time."""
_LONG = 19
_LONG_NUMBER = re.compile(rf"[0-9]{{{_LONG}}}")
_ODD_NUMBER = re.compile(r"[0-9][eE]|[0-9.]{300}")
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEPS = tuple(1 if each in b"[{" else -1 if each in b"]}" else 0 for each in range(256))
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_HALF = "must not have half of a surrogate pair"
_DEEP = f"must not be nested deeper than {DEEPEST} levels"


class NotJson(Exception):
    """A text that is not JSON; the message says why."""


class CannotWrite(Exception):
    """A decoded value that cannot be encoded as JSON; the message says why."""


class Numeral(str):
    """A number that a float would round, in its original text."""

    __slots__ = ()


def decode_json(body: bytes) -> Any:
    """Decode JSON. Numbers that would be rounded become numerals; the rest is as usual."""
    if _INEXACT.search(body) is None:
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            pass  # The exact decoder has the position; it accepts a lone surrogate, to name its field.
    try:
        return _decode_exact(body.decode())
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None


def decode_valid_json(text: str) -> Any:
    """Decode a text that is known to be JSON, with every whole number exact."""
    # orjson makes a float of a number that is longer than this.
    if len(text) < _LONG or _LONG_NUMBER.search(text) is None:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # The other decoder accepts a lone surrogate.
    return json.loads(text)


def encode_json(value: Any) -> str:
    """Encode a value of `decode_json`, or a part of it; every number as it was written."""
    try:
        return orjson.dumps(value, default=_encode_numeral, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except orjson.JSONEncodeError as error:
        raise CannotWrite(_HALF if "surrogate" in str(error) else _DEEP) from None


def json_problem(text: str, *, must_be_object: bool = False, storable: bool = False) -> str:
    """Return the problem of a text that has to be JSON; empty if there is none."""
    kind = "must be a JSON object" if must_be_object else "must be JSON"
    if len(text) > DEEPEST and _measure_depth(text) > DEEPEST:
        return _DEEP
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        # It accepts neither a lone surrogate nor a number that is too large.
        try:
            value = _decode_exact(text)
        except NotJson:
            return kind
        if not (problem := _find_number_problem(text)):
            return _HALF
        return problem
    if must_be_object and type(value) is not dict:
        return kind
    if storable and "\\u0000" in text and _NUL.search(text):
        return "must not contain the character NUL"
    return _find_number_problem(text) if _ODD_NUMBER.search(text) else ""


def _decode_exact(text: str) -> Any:
    try:
        return _exact_decoder.decode(text)
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg[:1].lower()}{error.msg[1:]} (character {error.pos + 1})") from None


def _parse_number(text: str) -> Numeral:
    return Numeral(text)


def _parse_int(text: str) -> int | Numeral:
    return int(text) if len(text) < 19 and text != "-0" else Numeral(text)


def _refuse_constant(text: str) -> NoReturn:
    raise NotJson(f"{text} is no number of JSON")


_exact_decoder = json.JSONDecoder(
    parse_float=_parse_number, parse_int=_parse_int, parse_constant=_refuse_constant
)


def _encode_numeral(value: Any) -> orjson.Fragment:
    if isinstance(value, Numeral):
        return orjson.Fragment(str(value))
    raise TypeError(type(value).__name__)


def _measure_depth(text: str) -> int:
    """Measure the nesting depth of a text; 0 where it has too few brackets to matter."""
    if text.count("{") + text.count("[") <= DEEPEST:
        return 0
    outside = _TEXTS.sub(b"", text.encode())
    return max(accumulate(map(_STEPS.__getitem__, outside)), default=0)


class _TooLarge(Exception):
    """A number that not every reader can represent."""


def _find_number_problem(text: str) -> str:
    try:
        _number_checker.decode(text)
    except _TooLarge as problem:
        return str(problem)
    return ""


def _check_number(text: str) -> float:
    if len(text) > LONGEST_NUMBER:
        raise _TooLarge(f"must not have a number of more than {LONGEST_NUMBER} digits")
    number = float(text)
    lost = number == 0 and any(each in "123456789" for each in re.split("[eE]", text)[0])
    if lost or math.isinf(number):
        raise _TooLarge("must not have a number that is out of the range of a double")
    return number


_number_checker = json.JSONDecoder(parse_float=_check_number, parse_int=_check_number)
