"""What a writer of history counts."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter

_known: WeakKeyDictionary[CollectorRegistry, tuple[Counter, Counter, Counter]] = WeakKeyDictionary()


class HistoryMeasures:
    """The counters of one kind of entity; kinds of one node share the series."""

    def __init__(self, registry: CollectorRegistry, entity: str) -> None:
        if registry not in _known:
            _known[registry] = (
                Counter("charter_history_changes", "Changes written.", ("entity",), registry=registry),
                Counter("charter_history_records", "Ended records written.", ("entity",), registry=registry),
                Counter("charter_history_refused", "Entries set aside.", ("entity",), registry=registry),
            )
        self._changes, self._records, self._refused = (each.labels(entity).inc for each in _known[registry])

    def wrote(self, changes: int, records: int) -> None:
        """Counts what was committed; an entry that had to be written again counts again."""
        self._changes(changes)
        self._records(records)

    def refused(self, entries: int) -> None:
        """Counts what the database will never take."""
        self._refused(entries)
