"""The generated SQL as the engine reads it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generated.orchestrator.lifecycle import JOB
from generated.orchestrator.records import JobRecord
from generated.orchestrator.system import SYSTEM
from runtime.stores.postgres.codec import PostgresCodec, storable
from runtime.stores.postgres.statements import load_statements, parse_statements
from runtime.stores.semantics.rules import prepare_rules

FOLDER = Path(__file__).parents[4] / "generated" / "orchestrator" / "sql"


def test_a_statement_has_a_name_what_it_takes_and_its_text() -> None:
    found = parse_statements(
        "-- A file.\n\n-- one(key uuid, LIMIT_S double precision)\n-- What it is for.\n"
        "-- cuts error to 20 bytes\nSELECT $1\n-- a remark\nFROM x;\n\n-- two()\nSELECT 2;\n"
    )
    assert [*found] == ["one", "two"]
    one = found["one"]
    assert one.takes == {"key": "uuid", "LIMIT_S": "double precision"}
    assert one.cuts == {"error": 20}
    assert one.text == "-- one\nSELECT $1\nFROM x"


def test_every_variable_of_a_statement_is_one_of_the_environment() -> None:
    for each in load_statements("orchestrator", "job").values():
        assert {name for name in each.takes if name.isupper()} <= SYSTEM.variables.keys()


@pytest.mark.req("ORC-107")
def test_no_statement_goes_by_a_clock_that_stands_still() -> None:
    """Neither now() nor its other names, in statements, triggers and defaults alike."""
    still = re.compile(r"\b(now\(\)|current_timestamp|localtimestamp|transaction_timestamp)", re.IGNORECASE)
    for path in FOLDER.rglob("*.sql"):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
        assert [line for line in lines if still.search(line)] == []


@pytest.mark.req("ORC-112")
def test_whoever_takes_passes_by_what_is_locked() -> None:
    known = load_statements("orchestrator", "job")
    assert "FOR UPDATE OF jobs SKIP LOCKED" in known["claim"].text
    for name in ("due_accept", "due_fail", "due_requeue"):
        assert "SKIP LOCKED" in known[name].text


@pytest.mark.req("ORC-049", "ORC-132")
def test_only_what_operators_ask_for_deletes() -> None:
    known = load_statements("orchestrator", "job")
    assert not [name for name, each in known.items() if "DELETE" in each.text]
    deleting = {name for name, each in known.items() if re.search(r"jobs_(remove|purge)\(", each.text)}
    assert deleting == {"delete", "purge"}


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("short", 5, "short"),
        ("longer", 5, "longe"),
        ("žž", 3, "ž"),
        ("a\0b", None, "a\N{REPLACEMENT CHARACTER}b"),
        ("a\ud800b", None, "a?b"),
    ],
)
def test_texts_are_made_storable(text: str, most: int | None, kept: str) -> None:
    assert storable(text, most) == kept


def test_what_can_be_a_key() -> None:
    columns = load_statements("orchestrator", "job")["columns"]
    codec = PostgresCodec(prepare_rules(JOB, JobRecord, {}), JobRecord, columns)
    assert codec.is_key("00000000-0000-4000-8000-00000000000A")
    assert not any(map(codec.is_key, ["", "abc", "00000000000040008000000000000000", " " + "0" * 36]))
