"""The journal of an entity: a member of its object with the history and the time of its end.

It is written atomically with the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from runtime.stores.contract import CREATION, HistoryEntry
from runtime.stores.semantics.rules import EPOCH, Rules

JournalEntry = tuple[str | int, ...]
"""An entry: the name of the edge, actor, moment, fence, owner, reason and trace; then the state that it left,
where the edge leaves several, or in which an entity began, where there are several."""
_MOST = 1000
"""Most entries of one entity; beyond that the oldest are dropped."""
_HISTORY, _DROPPED, _ENDED = "history", "dropped", "ended"


def add_entries(journal: Mapping[str, Any], entries: Sequence[JournalEntry]) -> dict[str, Any]:
    """Append entries to the journal."""
    history = [*journal.get(_HISTORY, ()), *map(list, entries)]
    dropped = int(journal.get(_DROPPED, 0)) + max(0, len(history) - _MOST)
    return {**journal, _HISTORY: history[-_MOST:], _DROPPED: dropped}


def mark_ended(journal: Mapping[str, Any], now: int, position: int) -> dict[str, Any]:
    """Mark the journal of an entity that ends now; `position` orders entities that end at the same time."""
    return {**journal, _ENDED: [now, position]}


def read_ended(journal: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the time and position of an entity's end; None where it has not ended."""
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
