"""Metrics of a writer of history."""

from __future__ import annotations

from runtime.observe.metrics import Metrics


class HistoryMeasures:
    """The counters of one kind of entity; kinds of one node share the series."""

    def __init__(self, metrics: Metrics, entity: str) -> None:
        self._changes = metrics.counter("charter_history_changes", "Changes written.", entity)
        self._records = metrics.counter("charter_history_records", "Ended records written.", entity)
        self._refused = metrics.counter("charter_history_refused", "Entries set aside.", entity)

    def count_written(self, changes: int, records: int) -> None:
        """Count what was committed; an entry that had to be written again counts again."""
        self._changes.add(changes)
        self._records.add(records)

    def count_refused(self, entries: int) -> None:
        """Count entries that the database rejects permanently."""
        self._refused.add(entries)
