"""Due changes: which clock drives what, when it is due, and what it gives along."""

from __future__ import annotations

from typing import Any

from runtime.model.lifecycles import Due
from runtime.stores.semantics.edges import applies
from runtime.stores.semantics.rules import Clock, Rules, to_microseconds

BATCH = 500
"""How many one batch changes, where the lifecycle does not say."""


def clocks_of(rules: Rules, name: str, deletion: str) -> tuple[Clock, ...]:
    """Return the clocks of a change by its name; `deletion` is what the deletion is called."""
    return tuple(each for each in rules.clocks if (each.change.name if each.change else deletion) == name)


def due_at(rules: Rules, due: Due, record: Any) -> int | None:
    """Return the moment after which a change is due by a time of the record; None where it never is."""
    if due.at is None:
        return None
    at = rules.moment_at(record, due.at)
    return None if at is None else at + delay(rules, due)


def delay(rules: Rules, due: Due) -> int:
    """`after`: how long after its time a change is due."""
    return to_microseconds(float(rules.values[due.after])) if due.after else 0


def is_in_force(rules: Rules, due: Due, now: int, opened: int) -> bool:
    """`grace`: whether a clock counts already, so long after the store was opened."""
    return due.grace is None or now - opened >= to_microseconds(float(rules.values[due.grace]))


def applies_by_clock(rules: Rules, clock: Clock, record: Any) -> bool:
    """Whether a clock is about a record at all: by its state, and as the change wants it."""
    if clock.change is None:
        return rules.state(record) in rules.lifecycle.deletable
    return applies(rules, clock.change, record)


def is_due(rules: Rules, clock: Clock, record: Any, now: int, *, holder_state: int | None = None) -> bool:
    """Whether a change is due for a record. The exact moment is not late yet.

    With `holder_in` the state of the lease's holder counts, as long as there is a lease; one that is gone
    counts as being in it.
    """
    if not applies_by_clock(rules, clock, record):
        return False
    due = clock.due
    if due.at is not None:
        at = due_at(rules, due, record)
        return at is not None and at < now
    is_leased = rules.lease is not None and rules.state(record) == rules.lease.state
    return is_leased and due.holder_in is not None and holder_state in (None, due.holder_in)


def batch_size(rules: Rules, due: Due) -> int:
    """`batch`: how many one step changes at most."""
    return int(rules.values[due.batch]) if due.batch else BATCH


def due_given(due: Due, record: Any) -> dict[str, str]:
    """`values`: what a change takes when the clock drives it; `{name}` in a text is a field of the record."""
    return {name: text.format_map(_Fields(record)) for name, text in due.values.items()}


class _Fields(dict[str, Any]):
    """The fields of a record by name, read when they are asked for."""

    def __init__(self, record: object) -> None:
        super().__init__()
        self._record = record

    def __missing__(self, name: str) -> Any:
        return getattr(self._record, name)
