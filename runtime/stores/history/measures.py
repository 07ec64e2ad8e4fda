"""What a writer of history counts."""

from __future__ import annotations

from runtime.observe.metrics import Metrics


class HistoryMeasures:
    """The counters of one kind of entity; kinds of one node share the series."""

    def __init__(self, metrics: Metrics, entity: str) -> None:
        self._changes = metrics.counter("charter_history_changes", "Changes written.", entity)
        self._records = metrics.counter("charter_history_records", "Ended records written.", entity)
        self._refused = metrics.counter("charter_history_refused", "Entries set aside.", entity)

    def wrote(self, changes: int, records: int) -> None:
        """Counts what was committed; an entry that had to be written again counts again."""
        self._changes.add(changes)
        self._records.add(records)

    def refused(self, entries: int) -> None:
        """Counts what the database will never take."""
        self._refused.add(entries)
