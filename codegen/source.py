"""YAML text as plain data that remembers where each value stood."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from codegen.diagnostics import Diagnostic, Place

Path = tuple[str | int, ...]

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"^[-+]?(0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"^[-+]?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?$")
_QUOTED = ("'", '"', "|", ">")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Spot:
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

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where a value (or its key) stands; the nearest thing around it when it is not there."""
        wanted = self.keys if key else self.values
        while path and path not in wanted:
            path = path[:-1]
        spot = wanted.get(path, Spot(0, 0, 1))
        lines = self.text.splitlines()
        line = lines[spot.line] if spot.line < len(lines) else ""
        return Place(self.name, spot.line + 1, spot.column + 1, line, spot.length)


def parse(name: str, text: str) -> tuple[Source, list[Diagnostic]]:
    """Reads YAML; syntax errors and duplicate keys come back as diagnostics."""
    source = Source(name, text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        return source, [_syntax_error(source, error)]
    except (yaml.YAMLError, UnicodeError) as error:
        return source, [Diagnostic(source.place(()), "E001", f"This is not YAML: {error}.", _SYNTAX_HINT)]
    finally:
        loader.dispose()
    complaints: list[Diagnostic] = []
    if node is not None:
        source.data = _build(node, (), source, complaints, frozenset())
    return source, complaints


_SYNTAX_HINT = "Check the indentation and quotes here; text with ': ' or a leading '{' needs quotes."


def _syntax_error(source: Source, error: yaml.MarkedYAMLError) -> Diagnostic:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    lines = source.text.splitlines()
    place = Place(source.name, line + 1, column + 1, lines[line] if line < len(lines) else "")
    return Diagnostic(place, "E001", f"This is not YAML: {error.problem or error.context}.", _SYNTAX_HINT)


def _build(node: Any, path: Path, source: Source, complaints: list[Diagnostic], inside: frozenset[int]) -> Any:
    source.values[path] = _spot(node)
    if id(node) in inside:
        complaints.append(
            Diagnostic(source.place(path), "E001", "This alias contains itself.", "Write the value out instead.")
        )
        return None
    within = inside | {id(node)}
    if isinstance(node, yaml.MappingNode):
        return _build_mapping(node, path, source, complaints, within)
    if isinstance(node, yaml.SequenceNode):
        return [
            _build(item, (*path, index), source, complaints, within) for index, item in enumerate(node.value)
        ]
    return _scalar(node)


def _build_mapping(
    node: Any, path: Path, source: Source, complaints: list[Diagnostic], inside: frozenset[int]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        # A key is always text, so that names such as `on` or `no` stay what they are.
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else str(key_node.start_mark.line)
        here = (*path, key)
        if key in found:
            first = source.place(here, key=True)
            source.keys[here] = _spot(key_node)
            complaints.append(
                Diagnostic(
                    source.place(here, key=True),
                    "E002",
                    f"The key '{key}' is here twice; it is already on line {first.line}.",
                    "Remove one of them or give it another name.",
                )
            )
            continue
        source.keys[here] = _spot(key_node)
        found[key] = _build(value_node, here, source, complaints, inside)
    return found


def _spot(node: Any) -> Spot:
    start, end = node.start_mark, node.end_mark
    length = end.column - start.column if end.line == start.line else 1
    return Spot(start.line, start.column, max(1, length))


def _scalar(node: Any) -> Any:
    # YAML 1.2's core schema, and dates stay text: `NO` is a country and 2026-02-10 a label.
    text: str = node.value
    if node.style in _QUOTED:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text
