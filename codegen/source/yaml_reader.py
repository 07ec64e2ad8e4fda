"""YAML reader: text -> plain data, with the source position of each key and value."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import yaml

from codegen.diagnostics import Diagnostic, Place
from codegen.language.renamed_keys import rename_key

Path = tuple[str | int, ...]

MAX_DEPTH = 32
MAX_VALUES = 50_000
"""Far beyond any spec. Each use of an alias counts, which bounds the expansion of aliases."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_INT = re.compile(r"^[-+]?(0|[1-9][0-9]{0,39})$")
_FLOAT = re.compile(r"^[-+]?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?$")
_QUOTED = ("'", '"', "|", ">")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


class SourceSpan(NamedTuple):
    """Line and column of a node, from 0, and its length on its first line."""

    line: int
    column: int
    length: int


@dataclass
class Source:
    """One parsed file. `data` is None when the text is no YAML at all."""

    name: str
    text: str
    data: Any = None
    keys: dict[Path, SourceSpan] = field(default_factory=dict)
    values: dict[Path, SourceSpan] = field(default_factory=dict)
    aliased: set[tuple[int, int]] = field(default_factory=set)
    """Lines and columns, from 1, of values that aliases repeat: one in the text, several in the data."""

    @cached_property
    def lines(self) -> list[str]:
        return _LINE_END.split(self.text)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Find the position of a value (or of its key), or of the nearest value around a missing one."""
        wanted = self.keys if key else self.values
        while path and path not in wanted:
            path = path[:-1]
        return self.span_to_place(wanted.get(path, SourceSpan(0, 0, 1)))

    def span_to_place(self, span: SourceSpan) -> Place:
        """Convert a span to a place with the text of its line."""
        line = self.lines[span.line] if span.line < len(self.lines) else ""
        return Place(self.name, span.line + 1, span.column + 1, line, span.length)

    def rename(self, path: tuple[str, ...], new: str) -> None:
        """Rename a key of the data; all below it is found under the new name."""
        rename_key(self.data, path, new)
        self.keys, self.values = (_move_spans(spans, path, new) for spans in (self.keys, self.values))

    def remove(self, path: Path) -> Any:
        """Remove a value from the data; in a list the following items and their spans are renumbered."""
        *parent_path, last = path
        parent = self.data
        for step in parent_path:
            parent = parent[step]
        if isinstance(last, int):
            self.keys, self.values = (_renumber_items(spans, path) for spans in (self.keys, self.values))
        return parent.pop(last)


def parse(name: str, text: str) -> tuple[Source, list[Diagnostic]]:
    """Parse YAML; returns syntax errors and duplicate keys as diagnostics."""
    source = Source(name, text)
    reader = _Reader(source)
    try:
        node = reader.read()
        if node is not None:
            source.data = reader.build(node, ())
    except yaml.MarkedYAMLError as error:
        reader.complaints.append(_syntax_error_to_diagnostic(source, error))
    except yaml.reader.ReaderError as error:
        reader.complaints.append(_bad_character_to_diagnostic(source, error))
    except _UnsupportedYaml as error:
        source.data = None
        reader.complaints.append(Diagnostic(source.span_to_place(error.span), "E008", str(error), error.hint))
    return source, reader.complaints


@dataclass(slots=True)
class _Node:
    """A scalar with its text, a list with its nodes, or a mapping with keys and values in turn."""

    kind: str
    span: SourceSpan
    text: str = ""
    quoted: bool = False
    parts: list[_Node] = field(default_factory=list)


class _UnsupportedYaml(Exception):
    """A YAML feature that specs do not support."""

    def __init__(self, span: SourceSpan, message: str, hint: str) -> None:
        super().__init__(message)
        self.span = span
        self.hint = hint


class _Reader:
    """Builds nodes from parser events without recursion, and data from nodes, within the bounds."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.complaints: list[Diagnostic] = []
        self._root: _Node | None = None
        self._open: list[_Node] = []
        self._anchors: dict[str, _Node] = {}
        self._read = self._built = 0
        self._seen: set[int] = set()

    def read(self) -> _Node | None:
        handlers = {
            yaml.ScalarEvent: self._add_scalar,
            yaml.MappingStartEvent: self._open_collection,
            yaml.SequenceStartEvent: self._open_collection,
            yaml.MappingEndEvent: self._close_collection,
            yaml.SequenceEndEvent: self._close_collection,
            yaml.AliasEvent: self._add_alias,
            yaml.DocumentStartEvent: self._check_document,
        }
        loader = _Loader(self.source.text)
        try:
            while (kind := type(event := loader.get_event())) is not yaml.StreamEndEvent:
                if kind in handlers:
                    handlers[kind](event)
        finally:
            loader.dispose()
        return self._root

    def _add_scalar(self, event: Any) -> None:
        self._add(_Node("scalar", _event_to_span(event), event.value, event.style in _QUOTED), event)

    def _open_collection(self, event: Any) -> None:
        node = _Node("mapping" if type(event) is yaml.MappingStartEvent else "list", _event_to_span(event))
        self._add(node, event)
        self._open.append(node)
        if len(self._open) > MAX_DEPTH:
            raise _UnsupportedYaml(
                node.span, f"This is nested more than {MAX_DEPTH} levels deep.", "No spec is."
            )

    def _close_collection(self, event: Any) -> None:
        node = self._open.pop()
        node.span = _event_to_span(event, since=node.span)

    def _check_document(self, event: Any) -> None:
        if self._root is not None:
            raise _UnsupportedYaml(
                _event_to_span(event), "This starts a second document.", "Put one document into a file."
            )

    def _add(self, node: _Node, event: Any) -> None:
        if event.tag is not None:
            self._complain(
                node.span, f"Tags such as '{event.tag}' have no meaning in a spec.", "Remove the tag."
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._append(node)

    def _add_alias(self, event: Any) -> None:
        node, span = self._anchors.get(event.anchor), _event_to_span(event)
        if node is None:
            raise _UnsupportedYaml(
                span, f"No anchor '&{event.anchor}' comes before this alias.", "Write the value out."
            )
        if any(node is each for each in self._open):
            raise _UnsupportedYaml(
                span, f"The alias '*{event.anchor}' contains itself.", "Write the value out."
            )
        self._append(node)

    def _append(self, node: _Node) -> None:
        self._read += 1
        if self._read > 2 * MAX_VALUES:  # each value may have a key
            raise _make_size_error(node.span)
        if self._open:
            self._open[-1].parts.append(node)
        else:
            self._root = node

    def build(self, node: _Node, path: Path) -> Any:
        """Build the data of a node, and add its spans to the source."""
        self._built += 1
        if self._built > MAX_VALUES or len(path) > MAX_DEPTH:
            raise _make_size_error(node.span)
        self.source.values[path] = node.span
        if id(node) in self._seen:
            self.source.aliased.add((node.span.line + 1, node.span.column + 1))
            keys = node.parts[::2] if node.kind == "mapping" else ()
            self.source.aliased |= {(key.span.line + 1, key.span.column + 1) for key in keys}
        self._seen.add(id(node))
        if node.kind == "mapping":
            return self._build_mapping(node, path)
        if node.kind == "list":
            return [self.build(item, (*path, index)) for index, item in enumerate(node.parts)]
        return node.text if node.quoted else _parse_scalar(node.text)

    def _build_mapping(self, node: _Node, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in zip(node.parts[::2], node.parts[1::2], strict=True):
            if key.kind != "scalar":
                self._complain(key.span, f"A {key.kind} cannot be a key.", "Use a name.")
                continue
            # A key is always text: `on` and `no` are names, not booleans.
            here = (*path, key.text)
            if key.text in found:
                first = self.source.place(here, key=True).line
                message = f"The key '{key.text}' is here twice; it is already on line {first}."
                hint = "Remove one of them or give it another name."
                self.complaints.append(Diagnostic(self.source.span_to_place(key.span), "E002", message, hint))
                continue
            self.source.keys[here] = key.span
            found[key.text] = self.build(value, here)
        return found

    def _complain(self, span: SourceSpan, message: str, hint: str) -> None:
        self.complaints.append(Diagnostic(self.source.span_to_place(span), "E008", message, hint))


def _make_size_error(span: SourceSpan) -> _UnsupportedYaml:
    hint = "Write out what the aliases stand for; it is more than it looks."
    return _UnsupportedYaml(span, f"The file has more than {MAX_VALUES} values or is nested too deep.", hint)


def _event_to_span(event: Any, since: SourceSpan | None = None) -> SourceSpan:
    start, end = since or event.start_mark, event.end_mark
    length = end.column - start.column if end.line == start.line else 1
    return SourceSpan(start.line, start.column, length or 1)


def _parse_scalar(text: str) -> Any:
    # YAML 1.2's core schema, and dates stay text: `NO` is a country and 2026-02-10 a label.
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text) and math.isfinite(number := float(text)):
        return number
    return text


def _syntax_error_to_diagnostic(source: Source, error: yaml.MarkedYAMLError) -> Diagnostic:
    mark = error.problem_mark or error.context_mark
    place = source.span_to_place(SourceSpan(mark.line, mark.column, 1) if mark else SourceSpan(0, 0, 1))
    hint = "Check the indentation and quotes here; text with ': ' or a leading '{' needs quotes."
    if place.source[: place.column].strip(" ").startswith("\t"):
        hint = "Indent with spaces; this is a tab."
    return Diagnostic(place, "E001", f"This is not YAML: {error.problem or error.context}.", hint)


def _bad_character_to_diagnostic(source: Source, error: Any) -> Diagnostic:
    before = source.text.encode()[: error.position].decode(errors="ignore")
    lines = _LINE_END.split(before)
    place = source.span_to_place(SourceSpan(len(lines) - 1, len(lines[-1]), 1))
    return Diagnostic(place, "E001", f"This is not YAML: {error.reason}.", "Remove the character.")


def _move_spans(spans: dict[Path, SourceSpan], path: Path, new: str) -> dict[Path, SourceSpan]:
    """Move the spans of a key, and of all below it, to the new name of the key."""
    end = len(path)
    return {
        (*path[:-1], new, *each[end:]) if each[:end] == path else each: span for each, span in spans.items()
    }


def _renumber_items(spans: dict[Path, SourceSpan], removed: Path) -> dict[Path, SourceSpan]:
    """Renumber the items that follow a removed one in its list."""
    *parent, index = removed
    depth = len(parent)
    renumbered: dict[Path, SourceSpan] = {}
    for path, span in spans.items():
        step = path[depth] if len(path) > depth and list(path[:depth]) == parent else None
        if not isinstance(step, int) or not isinstance(index, int) or step < index:
            renumbered[path] = span
        elif step > index:
            renumbered[(*path[:depth], step - 1, *path[depth + 1 :])] = span
    return renumbered
