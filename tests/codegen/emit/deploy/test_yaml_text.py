"""Our YAML writer: the same text as the library's, and the same data when read back."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codegen.emit.deploy.yaml_text import dump_documents, dump_scalar

LINES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=12)
ODD = [
    "yes",
    "No",
    "NULL",
    "~",
    "on",
    "12",
    "1.5",
    "0x1F",
    "2026-02-10",
    "12:30",
    "",
    " a",
    "a ",
    "a: b",
    "#",
    "- x",
]
BROKEN = ["a\nb", "\n", "a\n", "\r", "\n\n x", "a\x85", "a\u2028b", "tab\there"]
SCALARS = st.one_of(LINES, st.sampled_from(ODD + BROKEN), st.integers(), st.booleans(), st.none())
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(LINES, inner, max_size=3)),
    max_leaves=12,
)


class Library(yaml.SafeDumper):
    """The library's emitter, configured to write as we want it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


@given(st.lists(st.dictionaries(LINES, VALUES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_written_documents_can_be_read(data: list[dict[str, Any]]) -> None:
    """A reader gets the data that was written."""
    assert list(yaml.safe_load_all(dump_documents(data))) == data


@pytest.mark.parametrize(
    "text", [*ODD, "a", "$", "${PORT:-1}", "a:b", "a.b/c-d", "é", "'", '"', "{", "[", "&a", "*a", "!"]
)
def test_text_is_quoted_as_the_library_quotes_it(text: str) -> None:
    """Quotes are there exactly where the library would put them."""
    assert yaml.safe_dump({"key": text}, allow_unicode=True) == f"key: {dump_scalar(text)}\n"


def test_the_layout_is_the_library_s() -> None:
    """Blocks, indented lists, empty collections and lists in lists look as the library writes them."""
    data = {
        "a": [1, {"b": "c", "d": [{"e": None}, ["f", "g"]]}, [], {}],
        "h": {},
        "i": [],
        "j": {"k": {"l": True}},
    }
    expected = yaml.dump_all([data, data], Dumper=Library, sort_keys=False, width=10**9)
    assert dump_documents([data, data]) == expected
