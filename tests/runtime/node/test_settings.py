"""Numbers, switches, URLs and names of processes in the environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from runtime.model.system import Variable
from runtime.node.settings import SettingsError, find_unknown_variables, read

WAIT = Variable("WAIT", "number", "How long it waits.", default="2", minimum=0.5, maximum=10)
STRICT = Variable("STRICT", "bool", "Whether it is strict.", default="false")
SERVER = Variable("SERVER", "url", "Where the server is.", required=True)
NAME = Variable("NAME", "string", "Name of the process.", default_from="process")


def value(variable: Variable, text: str = "") -> object:
    return read([variable], (), {variable.name: text})[variable.name]


def problem(variable: Variable, text: str) -> str:
    with pytest.raises(SettingsError) as error:
        value(variable, text)
    (found,) = error.value.problems
    return found


def test_a_text_that_is_empty_by_default_is_a_text() -> None:
    """No value at all is None; an empty default is a text that is empty."""
    assert value(Variable("PREFIX", "string", "What keys begin with.", default="")) == ""
    assert value(Variable("PREFIX", "string", "What keys begin with.")) is None


@pytest.mark.req("OQ-220")
def test_a_text_matches_its_pattern_as_a_whole() -> None:
    """Also where only a part of it would; what may be left out may be empty."""
    bucket = Variable("BUCKET", "string", "Where it is kept.", pattern="[a-z]{2,4}")
    assert value(bucket, "abc") == "abc"
    assert value(bucket) is None
    for text in ("abcde", "Abc", "ab\n", "a"):
        assert problem(bucket, text) == f"BUCKET: must match [a-z]{{2,4}}, not {text!r} (Where it is kept)"


@pytest.mark.parametrize(("text", "number"), [("", 2.0), ("0.5", 0.5), ("3", 3.0), ("+1.25", 1.25)])
def test_a_number_may_have_a_fraction(text: str, number: float) -> None:
    """A number is read as it is written, and is always a float."""
    found = value(WAIT, text)
    assert found == number and isinstance(found, float)


@pytest.mark.req("ORC-164")
@pytest.mark.parametrize("text", ["abc", "1e3", "nan", "inf", "1,5", "0x1", ".5", "1.", "\u0661"])
def test_an_invalid_number_is_refused(text: str) -> None:
    """Neither words nor other notations of numbers are accepted."""
    assert problem(WAIT, text) == f"WAIT: must be a number, not {text!r} (How long it waits)"


@pytest.mark.parametrize(("text", "word"), [("0.49", "at least 0.5"), ("10.01", "at most 10")])
def test_a_number_keeps_to_its_bounds(text: str, word: str) -> None:
    """Bounds may have a fraction, too."""
    assert word in problem(WAIT, text)


@pytest.mark.parametrize(
    ("text", "wanted"), [("", False), ("true", True), ("TRUE", True), ("1", True), ("0", False)]
)
def test_a_switch_is_on_or_off(text: str, wanted: bool) -> None:
    """A switch is said by true and false, or by 1 and 0."""
    assert value(STRICT, text) is wanted


def test_a_switch_is_nothing_else() -> None:
    """An ambiguous value is refused."""
    assert problem(STRICT, "maybe").startswith("STRICT: must be true or false, not 'maybe'")


def test_a_url_is_taken_as_it_is() -> None:
    """A URL with all its parts is handed on unchanged."""
    url = "postgresql://user:p%40ss@db:5432/name?sslmode=require"
    assert value(SERVER, url) == url


@pytest.mark.parametrize("text", ["db:5432", "hunter2", "postgresql://", "postgresql://a b/c", "://x/y"])
def test_a_wrong_url_is_refused_without_its_text(text: str) -> None:
    """It may have a password, so the message does not show it."""
    found = problem(SERVER, text)
    assert found.startswith("SERVER: must be a URL such as scheme://")
    assert text not in found.removeprefix(
        "SERVER: must be a URL such as scheme://user:password@host:port/name"
    )


@pytest.mark.req("ORC-126")
def test_a_process_has_a_name_of_its_own() -> None:
    """The name has the host and the process, stays the same in it, and is another one in the next."""
    mine = str(value(NAME))
    assert mine == value(NAME)
    assert f"-{os.getpid()}-" in mine
    program = "from runtime.node.settings import _make_process_name; print(_make_process_name())"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert other.strip().rpartition("-")[2] != mine.rpartition("-")[2]
    assert value(NAME, "w1") == "w1"


SKEW = Variable("OUR_SKEW", "int", "How much clocks differ.", default="5", also_named=("SKEW", "OLD_SKEW"))


@pytest.mark.parametrize(
    ("environ", "number"),
    [
        ({}, 5),
        ({"OLD_SKEW": "3"}, 3),
        ({"OLD_SKEW": "3", "SKEW": "2"}, 2),
        ({"SKEW": "2", "OUR_SKEW": "1"}, 1),
        ({"SKEW": "2", "OUR_SKEW": ""}, 2),
    ],
)
def test_a_variable_may_have_other_names(environ: dict[str, str], number: int) -> None:
    """They count in their order where the variable itself is unset."""
    assert read([SKEW], (), environ) == {"OUR_SKEW": number}


def test_another_name_is_stronger_than_a_default_of_a_node() -> None:
    """An explicit value is kept."""
    assert read([SKEW], (), {"SKEW": "2"}, {"OUR_SKEW": "9"}) == {"OUR_SKEW": 2}
    assert read([SKEW], (), {}, {"OUR_SKEW": "9"}) == {"OUR_SKEW": 9}


def test_unknown_names_with_our_prefix_are_reported() -> None:
    """With a suggestion; the names of other programs are ignored."""
    known = {"OUR_SKEW": SKEW, "WAIT": WAIT}
    environ = {"OUR_SKEW": "1", "OUR_SKWE": "1", "OUR_THING": "x", "OURS": "x", "SKEW": "1"}
    assert find_unknown_variables("OUR_", known, environ) == [
        "OUR_SKWE is set, and nothing reads it; OUR_SKEW?",
        "OUR_THING is set, and nothing reads it",
    ]
    assert find_unknown_variables(None, known, environ) == []
