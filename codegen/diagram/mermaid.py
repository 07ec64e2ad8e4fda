"""Writes a state machine as a Mermaid state diagram, for pages that draw Mermaid themselves."""

import re
from collections.abc import Collection, Sequence

from codegen.diagram.model import Edge

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    {"as", "class", "classdef", "default", "direction", "end", "hide", "note", "scale", "state", "style"}
)
_FULL_WIDTH = 0xFEE0
_SPECIAL = re.compile(r'[#;:<>&"`\\{}\[\]%]')


def mermaid(initial: str, terminal: Collection[str], edges: Sequence[Edge]) -> str:
    """The `stateDiagram-v2` text: the start, every edge as "name (note)", and the end of terminal states."""
    states = _states(initial, terminal, edges)
    names = _identifiers(states)
    lines = ["stateDiagram-v2", "    direction LR"]
    lines += [f'    state "{_escaped(state)}" as {names[state]}' for state in states if names[state] != state]
    lines.append(f"    [*] --> {names[initial]}")
    for edge in edges:
        lines.append(f"    {names[edge.source]} --> {names[edge.target]}{_label(edge)}")
    lines += [f"    {names[state]} --> [*]" for state in states if state in terminal]
    return "\n".join(lines) + "\n"


def _states(initial: str, terminal: Collection[str], edges: Sequence[Edge]) -> list[str]:
    """All states in order of appearance; `terminal` may be a set, whose own order is not stable."""
    ends = [end for edge in edges for end in (edge.source, edge.target)]
    return list(dict.fromkeys([initial, *ends, *sorted(terminal)]))


def _identifiers(states: Sequence[str]) -> dict[str, str]:
    """What each state is called in the text: its own name, or an alias where Mermaid would stumble."""
    taken = set(states)
    names = {}
    for number, state in enumerate(states, start=1):
        name = state
        if not _PLAIN.fullmatch(state) or state.lower() in _RESERVED:
            name = f"s{number}"
            while name in taken:
                name += "_"
            taken.add(name)
        names[state] = name
    return names


def _label(edge: Edge) -> str:
    parts = [edge.name, f"({edge.note})" if edge.note else ""]
    text = _escaped(" ".join(part for part in parts if part))
    return f": {text}" if text else ""


def _escaped(text: str) -> str:
    """The text with its special characters in full width, as state diagrams print Mermaid's escapes raw."""
    return _SPECIAL.sub(lambda match: chr(ord(match[0]) + _FULL_WIDTH), " ".join(text.split()))
