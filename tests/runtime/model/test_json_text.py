"""JSON as text: nothing is lost in parsing and formatting, and unstorable values are found."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.model.json_text import (
    DEEPEST,
    CannotWrite,
    NotJson,
    Numeral,
    decode_json,
    decode_valid_json,
    encode_json,
    json_problem,
)

plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"))
values = st.recursive(
    plain | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(values)
def test_a_parsed_text_is_formatted_alike(value: Any) -> None:
    """Whatever JSON there is comes back with the same value, and is no problem."""
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(encode_json(decode_json(text.encode()))) == value
    assert json_problem(text) == ""


@given(values)
def test_the_two_readers_agree(value: Any) -> None:
    """The fast one and the exact one read the same, up to numbers that only the exact one keeps."""
    text = json.dumps([value])
    assert json.loads(encode_json(decode_json(text.encode()))) == json.loads(
        encode_json(decode_json(f"[{text},1.50]".encode())[0])
    )


@given(values | st.integers() | st.lists(st.integers()))
def test_a_value_is_that_of_the_standard_parser(value: Any) -> None:
    """Also a whole number that is too long for the fast parser."""
    assert decode_valid_json(json.dumps(value)) == value
    assert type(decode_valid_json(json.dumps(value))) is type(value)


@pytest.mark.parametrize("text", ["18446744073709551616", '{"n":-99999999999999999999}', '["\\ud800"]'])
def test_a_value_that_the_fast_reader_would_change_or_refuse(text: str) -> None:
    assert decode_valid_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "number",
    ["1.0", "1E5", "-0", "0.1e-7", "12345678901234567890", "9" * 500, "-9223372036854775809", "1.50"],
)
def test_numbers_are_kept_as_they_were_written(number: str) -> None:
    """To the last digit."""
    found = decode_json(f'{{"a":{number}}}'.encode())
    assert isinstance(found["a"], Numeral)
    assert encode_json(found) == f'{{"a":{number}}}'


@pytest.mark.parametrize(
    "text", ["", "{", "nope", "[1,]", '{"a":NaN}', "[Infinity]", "'a'", '{"a":1}x', "\ufeff1"]
)
def test_invalid_json(text: str) -> None:
    """It cannot be parsed, and is refused where JSON is needed."""
    with pytest.raises(NotJson):
        decode_json(text.encode())
    assert json_problem(text) == "must be JSON"
    assert json_problem(text, must_be_object=True) == "must be a JSON object"


def test_an_object_where_one_is_needed() -> None:
    """Other JSON is JSON, but no object."""
    for text in ("[]", "1", "null", '"{}"'):
        assert json_problem(text) == ""
        assert json_problem(text, must_be_object=True) == "must be a JSON object"
    assert json_problem("{}", must_be_object=True) == ""


@pytest.mark.parametrize(
    ("text", "is_nul"),
    [
        (r'"\u0000"', True),
        (r'"a\u0000b"', True),
        (r'"\\u0000"', False),
        (r'"\\\u0000"', True),
        (r'"\\\\u0000"', False),
        (r'{"\u0000":1}', True),
        (r'"u0000"', False),
    ],
)
def test_nul_is_found_only_where_it_is(text: str, is_nul: bool) -> None:
    """An escape for NUL is one; a backslash that is escaped itself begins none."""
    assert (json_problem(text, storable=True) != "") == is_nul == ("\0" in "".join(json.loads(text)))
    assert json_problem(text) == ""


@pytest.mark.parametrize("text", [r'"\ud800"', r'["a\udfff"]', r'{"\ud800":1}', r'"\udc00\ud800"'])
def test_half_of_a_surrogate_pair(text: str) -> None:
    """It can be read, so that its field can be named, but not passed on."""
    assert "surrogate" in json_problem(text)
    with pytest.raises(CannotWrite, match="surrogate"):
        encode_json(decode_json(text.encode()))


def nest(depth: int, inside: str = "1") -> str:
    return "[" * depth + inside + "]" * depth


def test_depth() -> None:
    """Counted outside of texts only, and refused without running into the limits of any reader."""
    assert json_problem(nest(DEEPEST)) == ""
    assert "deeper" in json_problem(nest(DEEPEST + 1))
    assert json_problem(json.dumps("[" * 5000)) == ""
    assert json_problem(json.dumps(["[[", "{", '"[', "\\"] * 100)) == ""
    assert "deeper" in json_problem(nest(100_000))
    assert json_problem(f"[{','.join(['[]'] * 5000)}]") == ""
    with pytest.raises(NotJson, match="deeply"):
        decode_json(nest(100_000).encode())
    with pytest.raises(CannotWrite, match="deeper"):
        encode_json(decode_json(nest(400).encode()))
    assert sys.getrecursionlimit() >= 1000


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("1e400", "range"),
        ("-1e400", "range"),
        ("1e-400", "range"),
        ("0.0e-400", ""),
        ("1e308", ""),
        ("1" * 309, ""),
        ("1" * 310, "range"),
        ("1" * 1001, "digits"),
        ("0." + "1" * 1001, "digits"),
        ("5e-324", ""),
    ],
)
def test_numbers_that_some_languages_cannot_represent(number: str, words: str) -> None:
    """Beyond a double, or of more digits than databases keep."""
    problem = json_problem(f'{{"a":{number}}}')
    assert (words in problem) if words else problem == ""
