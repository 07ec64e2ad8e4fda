"""A state machine as a Mermaid state diagram, for pages that render Mermaid themselves."""

import re
from collections.abc import Collection, Sequence

from codegen.diagram.model import Edge

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    {"as", "class", "classdef", "default", "direction", "end", "hide", "note", "scale", "state", "style"}
)
_FULL_WIDTH = 0xFEE0
_SPECIAL = re.compile(r'[#;:<>&"`\\{}\[\]%]')


def format_mermaid(
    initial: str, terminal: Collection[str], edges: Sequence[Edge], further: Sequence[str] = ()
) -> str:
    """Format as `stateDiagram-v2`: starts, each edge as "name (note)", and the end of terminal states."""
    states = list(dict.fromkeys([*_list_states(initial, terminal, edges), *further]))
    names = _assign_identifiers(states)
    lines = ["stateDiagram-v2", "    direction LR"]
    lines += [
        f'    state "{_escape_text(state)}" as {names[state]}' for state in states if names[state] != state
    ]
    lines += [f"    [*] --> {names[state]}" for state in (initial, *further)]
    for edge in edges:
        lines.append(f"    {names[edge.source]} --> {names[edge.target]}{_format_label(edge)}")
    lines += [f"    {names[state]} --> [*]" for state in states if state in terminal]
    return "\n".join(lines) + "\n"


def _list_states(initial: str, terminal: Collection[str], edges: Sequence[Edge]) -> list[str]:
    """List all states in order of appearance; `terminal` may be a set, whose order is not stable."""
    ends = [end for edge in edges for end in (edge.source, edge.target)]
    return list(dict.fromkeys([initial, *ends, *sorted(terminal)]))


def _assign_identifiers(states: Sequence[str]) -> dict[str, str]:
    """Assign each state its identifier: its own name, or an alias where Mermaid could not parse that."""
    used = set(states)
    names = {}
    for number, state in enumerate(states, start=1):
        name = state
        if not _PLAIN.fullmatch(state) or state.lower() in _RESERVED:
            name = f"s{number}"
            while name in used:
                name += "_"
            used.add(name)
        names[state] = name
    return names


def _format_label(edge: Edge) -> str:
    parts = [edge.name, f"({edge.note})" if edge.note else ""]
    text = _escape_text(" ".join(part for part in parts if part))
    return f": {text}" if text else ""


def _escape_text(text: str) -> str:
    """Replace special characters by their full-width form, as state diagrams print Mermaid's escapes raw."""
    return _SPECIAL.sub(lambda match: chr(ord(match[0]) + _FULL_WIDTH), " ".join(text.split()))
