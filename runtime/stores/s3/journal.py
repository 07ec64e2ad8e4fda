"""The journal of an entity: a member of its object with the history, and when the entity has ended.

It is written with the change itself, so that an entry is there if and only if the change is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from runtime.stores.contract import CREATION, HistoryEntry
from runtime.stores.semantics.rules import EPOCH, Rules

Line = tuple[str | int, ...]
"""An entry: the name of the edge, actor, moment, fence, owner, reason and trace; then the state that it left,
where the edge leaves several, or in which an entity began, where there are several."""
_MOST = 1000
"""Entries of one entity; beyond that the oldest are forgotten."""
_HISTORY, _DROPPED, _ENDED = "history", "dropped", "ended"


def add_lines(journal: Mapping[str, Any], lines: Sequence[Line]) -> dict[str, Any]:
    """Return the journal with some more entries."""
    history = [*journal.get(_HISTORY, ()), *map(list, lines)]
    dropped = int(journal.get(_DROPPED, 0)) + max(0, len(history) - _MOST)
    return {**journal, _HISTORY: history[-_MOST:], _DROPPED: dropped}


def mark_ended(journal: Mapping[str, Any], now: int, place: int) -> dict[str, Any]:
    """Return the journal of an entity that ends now; `place` orders those that end at one moment."""
    return {**journal, _ENDED: [now, place]}


def read_ended(journal: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return when an entity has ended, and its place among those; None where it goes on."""
    ended = journal.get(_ENDED)
    return None if ended is None else (int(ended[0]), int(ended[1]))


def read_history(rules: Rules, journal: Mapping[str, Any]) -> list[HistoryEntry]:
    """Return the entries, oldest first."""
    found = []
    first = int(journal.get(_DROPPED, 0)) + 1
    for sequence, (name, actor, at, *more) in enumerate(journal.get(_HISTORY, ()), first):
        edge = None if name == CREATION else rules.edges.get(name)
        fence, owner, reason, trace, *left = more
        source, target = (edge.source, edge.target) if edge else (None, rules.lifecycle.initial)
        if left:
            source, target = (int(left[0]), target) if edge else (None, int(left[0]))
        moment = EPOCH + timedelta(microseconds=int(at))
        found.append(
            HistoryEntry(sequence, name, source, target, actor, moment, int(fence), owner, reason, trace)
        )
    return found
