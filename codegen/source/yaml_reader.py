"""YAML text as plain data that remembers where each value stood."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import yaml

from codegen.diagnostics import Diagnostic, Place

Path = tuple[str | int, ...]

MAX_DEPTH = 32
MAX_VALUES = 50_000
"""Far beyond any spec. Aliases count as often as they are used, so that no file can grow without bound."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_INT = re.compile(r"^[-+]?(0|[1-9][0-9]{0,39})$")
_FLOAT = re.compile(r"^[-+]?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?$")
_QUOTED = ("'", '"', "|", ">")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


class Spot(NamedTuple):
    """Line and column of a node, from 0, and how far it reaches on its first line."""

    line: int
    column: int
    length: int


@dataclass
class Source:
    """One parsed file. `data` is None when the text is no YAML at all."""

    name: str
    text: str
    data: Any = None
    keys: dict[Path, Spot] = field(default_factory=dict)
    values: dict[Path, Spot] = field(default_factory=dict)
    repeated: set[tuple[int, int]] = field(default_factory=set)
    """Lines and columns, from 1, of what aliases repeat: one place in the text, several in the data."""

    @cached_property
    def lines(self) -> list[str]:
        return _LINE_END.split(self.text)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where a value (or its key) stands; the nearest thing around it when it is not there."""
        wanted = self.keys if key else self.values
        while path and path not in wanted:
            path = path[:-1]
        return self.at(wanted.get(path, Spot(0, 0, 1)))

    def at(self, spot: Spot) -> Place:
        line = self.lines[spot.line] if spot.line < len(self.lines) else ""
        return Place(self.name, spot.line + 1, spot.column + 1, line, spot.length)

    def forget(self, path: Path) -> Any:
        """Takes a value out of the data; what follows it in a list moves up, and its places with it."""
        *holder_path, last = path
        holder = self.data
        for step in holder_path:
            holder = holder[step]
        if isinstance(last, int):
            self.keys, self.values = (_move_up(spots, path) for spots in (self.keys, self.values))
        return holder.pop(last)


def parse(name: str, text: str) -> tuple[Source, list[Diagnostic]]:
    """Reads YAML; syntax errors and duplicate keys come back as diagnostics."""
    source = Source(name, text)
    reader = _Reader(source)
    try:
        node = reader.read()
        if node is not None:
            source.data = reader.build(node, ())
    except yaml.MarkedYAMLError as error:
        reader.complaints.append(_syntax_error(source, error))
    except yaml.reader.ReaderError as error:
        reader.complaints.append(_bad_character(source, error))
    except _Refused as refusal:
        source.data = None
        reader.complaints.append(Diagnostic(source.at(refusal.spot), "E008", str(refusal), refusal.hint))
    return source, reader.complaints


@dataclass(slots=True)
class _Node:
    """A scalar with its text, a list with its nodes, or a mapping with keys and values in turn."""

    kind: str
    spot: Spot
    text: str = ""
    quoted: bool = False
    parts: list[_Node] = field(default_factory=list)


class _Refused(Exception):
    """YAML that a spec has no use for."""

    def __init__(self, spot: Spot, message: str, hint: str) -> None:
        super().__init__(message)
        self.spot = spot
        self.hint = hint


class _Reader:
    """Puts the events of the YAML parser together without recursion, and within the bounds."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.complaints: list[Diagnostic] = []
        self._root: _Node | None = None
        self._open: list[_Node] = []
        self._anchors: dict[str, _Node] = {}
        self._read = self._built = 0
        self._seen: set[int] = set()

    def read(self) -> _Node | None:
        takers = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        loader = _Loader(self.source.text)
        try:
            while (kind := type(event := loader.get_event())) is not yaml.StreamEndEvent:
                if kind in takers:
                    takers[kind](event)
        finally:
            loader.dispose()
        return self._root

    def _scalar(self, event: Any) -> None:
        self._add(_Node("scalar", _spot(event), event.value, event.style in _QUOTED), event)

    def _start(self, event: Any) -> None:
        node = _Node("mapping" if type(event) is yaml.MappingStartEvent else "list", _spot(event))
        self._add(node, event)
        self._open.append(node)
        if len(self._open) > MAX_DEPTH:
            raise _Refused(node.spot, f"This is nested more than {MAX_DEPTH} levels deep.", "No spec is.")

    def _end(self, event: Any) -> None:
        node = self._open.pop()
        node.spot = _spot(event, since=node.spot)

    def _document(self, event: Any) -> None:
        if self._root is not None:
            raise _Refused(_spot(event), "This starts a second document.", "Put one document into a file.")

    def _add(self, node: _Node, event: Any) -> None:
        if event.tag is not None:
            self._complain(
                node.spot, f"Tags such as '{event.tag}' have no meaning in a spec.", "Remove the tag."
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._put(node)

    def _alias(self, event: Any) -> None:
        node, spot = self._anchors.get(event.anchor), _spot(event)
        if node is None:
            raise _Refused(
                spot, f"No anchor '&{event.anchor}' comes before this alias.", "Write the value out."
            )
        if any(node is each for each in self._open):
            raise _Refused(spot, f"The alias '*{event.anchor}' contains itself.", "Write the value out.")
        self._put(node)

    def _put(self, node: _Node) -> None:
        self._read += 1
        if self._read > 2 * MAX_VALUES:  # each value may have a key
            raise _too_much(node.spot)
        if self._open:
            self._open[-1].parts.append(node)
        else:
            self._root = node

    def build(self, node: _Node, path: Path) -> Any:
        """The data of a node; its places go to the source."""
        self._built += 1
        if self._built > MAX_VALUES or len(path) > MAX_DEPTH:
            raise _too_much(node.spot)
        self.source.values[path] = node.spot
        if id(node) in self._seen:
            self.source.repeated.add((node.spot.line + 1, node.spot.column + 1))
            keys = node.parts[::2] if node.kind == "mapping" else ()
            self.source.repeated |= {(key.spot.line + 1, key.spot.column + 1) for key in keys}
        self._seen.add(id(node))
        if node.kind == "mapping":
            return self._build_mapping(node, path)
        if node.kind == "list":
            return [self.build(item, (*path, index)) for index, item in enumerate(node.parts)]
        return node.text if node.quoted else _plain(node.text)

    def _build_mapping(self, node: _Node, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in zip(node.parts[::2], node.parts[1::2], strict=True):
            if key.kind != "scalar":
                self._complain(key.spot, f"A {key.kind} cannot be a key.", "Use a name.")
                continue
            # A key is always text, so that names such as `on` or `no` stay what they are.
            here = (*path, key.text)
            if key.text in found:
                first = self.source.place(here, key=True).line
                message = f"The key '{key.text}' is here twice; it is already on line {first}."
                hint = "Remove one of them or give it another name."
                self.complaints.append(Diagnostic(self.source.at(key.spot), "E002", message, hint))
                continue
            self.source.keys[here] = key.spot
            found[key.text] = self.build(value, here)
        return found

    def _complain(self, spot: Spot, message: str, hint: str) -> None:
        self.complaints.append(Diagnostic(self.source.at(spot), "E008", message, hint))


def _too_much(spot: Spot) -> _Refused:
    hint = "Write out what the aliases stand for; it is more than it looks."
    return _Refused(spot, f"The file has more than {MAX_VALUES} values or is nested too deep.", hint)


def _spot(event: Any, since: Spot | None = None) -> Spot:
    start, end = since or event.start_mark, event.end_mark
    length = end.column - start.column if end.line == start.line else 1
    return Spot(start.line, start.column, length or 1)


def _plain(text: str) -> Any:
    # YAML 1.2's core schema, and dates stay text: `NO` is a country and 2026-02-10 a label.
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text) and math.isfinite(number := float(text)):
        return number
    return text


def _syntax_error(source: Source, error: yaml.MarkedYAMLError) -> Diagnostic:
    mark = error.problem_mark or error.context_mark
    place = source.at(Spot(mark.line, mark.column, 1) if mark else Spot(0, 0, 1))
    hint = "Check the indentation and quotes here; text with ': ' or a leading '{' needs quotes."
    if place.source[: place.column].strip(" ").startswith("\t"):
        hint = "Indent with spaces; this is a tab."
    return Diagnostic(place, "E001", f"This is not YAML: {error.problem or error.context}.", hint)


def _bad_character(source: Source, error: Any) -> Diagnostic:
    before = source.text.encode()[: error.position].decode(errors="ignore")
    lines = _LINE_END.split(before)
    place = source.at(Spot(len(lines) - 1, len(lines[-1]), 1))
    return Diagnostic(place, "E001", f"This is not YAML: {error.reason}.", "Remove the character.")


def _move_up(spots: dict[Path, Spot], removed: Path) -> dict[Path, Spot]:
    *holder, index = removed
    depth = len(holder)
    moved: dict[Path, Spot] = {}
    for path, spot in spots.items():
        step = path[depth] if len(path) > depth and list(path[:depth]) == holder else None
        if not isinstance(step, int) or not isinstance(index, int) or step < index:
            moved[path] = spot
        elif step > index:
            moved[(*path[:depth], step - 1, *path[depth + 1 :])] = spot
    return moved
