"""The stored form of a spec."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from codegen.review.accepted import format_accepted
from codegen.review.form import encode_form, format_rule_name
from tests.support.codegen.review_forms import apply_edits, base, spec


def test_members_are_sorted_by_number_and_names_by_name() -> None:
    """Fields are in the order of their numbers, and mappings in the order of names."""
    form = encode_form(spec(base()))
    assert list(form["types"]["public"]["messages"]["Ticket"]["fields"])[:3] == ["ticket_id", "state", "zone"]
    assert list(form["callers"]["principals"]) == ["booth", "gate", "stranger", "till", "visitor"]


def test_defaults_are_omitted() -> None:
    """The defaults of the language are not stored."""
    form = encode_form(spec(apply_edits(base(), {"system/policies/shutdown/grace_ms": 5000})))
    assert "shutdown" not in form["system"]["policies"]
    assert form["types"]["inner"] == {"messages": {"Empty": {}}}


def test_an_order_with_a_meaning_is_preserved() -> None:
    """The calls that a transition follows stay in their order."""
    enter = encode_form(spec(base()))["lifecycle"]["entities"]["ticket"]["transitions"]["enter"]
    assert enter["after"] == ["TillService.Move", "TillService.Drop"]


def test_spaces_in_a_map_type_are_normalised() -> None:
    """`map<string,string>` is stored as `map<string, string>`."""
    path = "types/public/messages/Order/fields/tags"
    forms = [
        encode_form(spec(apply_edits(base(), {path: {"number": 11, "type": text}})))
        for text in ("map<string,string>", "map<string, string>")
    ]
    assert forms[0] == forms[1]


def test_the_text_is_stable() -> None:
    """The same spec gives the same text, in two-space JSON that ends with its records and a newline."""
    text = format_accepted(spec(base()), ["0001-a"])
    assert text == format_accepted(spec(json.loads(json.dumps(encode_form(spec(base()))))), ["0001-a"])
    assert text.endswith('  "records": [\n    "0001-a"\n  ]\n}\n')


def test_a_form_of_another_language_is_refused() -> None:
    """A stored word that the language does not know is an error, never ignored."""
    with pytest.raises(ValidationError):
        spec(apply_edits(base(), {"system/colour": "red"}))


def test_rules_between_variables_are_named_by_their_content() -> None:
    """The name of a rule has its variables and words, and not its reason."""
    assert [format_rule_name(each) for each in spec(base()).environment.rules] == [
        "SEATS greater_than KEPT_TICKETS",
        "NODE less_than_count_of NODES",
        "together NODE, NODES",
    ]
