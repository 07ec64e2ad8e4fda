"""The records of one kind of entity in a SQLite file, as steps work on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from runtime.model.lifecycles import Transition
from runtime.stores.contract import HistoryEntry
from runtime.stores.semantics.creation import forgotten_at, unique_until, unique_values
from runtime.stores.semantics.leases import is_free, is_in_index
from runtime.stores.semantics.rules import Rules
from runtime.stores.sqlite.claims import RowClaims, RowDues
from runtime.stores.sqlite.codec import RowCodec, to_time
from runtime.stores.sqlite.listing import RowListing
from runtime.stores.sqlite.rows import Rows
from runtime.stores.sqlite.statements import RECORD, Statements
from runtime.stores.wakeups import Wakeups

_AT_ONCE = 500


class SqliteTable:
    """Rows and what is kept beside them. Nothing here decides anything; every change is one call."""

    def __init__(
        self,
        rules: Rules,
        codec: RowCodec,
        statements: Statements,
        wakeups: Wakeups,
        now: int,
        *,
        max_terminal: int = 0,
    ) -> None:
        lifecycle = rules.lifecycle
        self.rules, self.wakeups, self.opened = rules, wakeups, now
        self.records = self.rows = Rows(rules.entity, lifecycle.key, codec, statements)
        self.listing = RowListing(rules, self.rows)
        self.claims = RowClaims(rules, self.rows) if rules.lease else None
        timed = (clock for clock in rules.clocks if clock.due.at is not None)
        self.dues: Mapping[int, RowDues] = {clock.number: RowDues(rules, clock, self.rows) for clock in timed}
        self.announced: list[tuple[str, bool]] = []
        """The keys of those that this step has changed, and whether each can be claimed now."""
        self._statements, self._max_terminal = statements, max_terminal
        self._keeps_ended = "end" in statements
        self._ceiling_index = rules.indexes[lifecycle.ceiling.index] if lifecycle.ceiling else None
        self._numbers = {name: number for number, name in lifecycle.states.items()}
        self._passed: set[str] = set()

    def begin(self) -> None:
        """Begin a step."""
        self.rows.begin()
        self.announced = []
        self._passed.clear()

    # Changes.

    def add(self, key: str, record: Any, now: int) -> None:
        """Add a new entity."""
        self.rows.insert(key, record)
        for name, value in unique_values(self.rules, record).items():
            until = unique_until(self.rules, name, now)
            if until is not None:
                given = {"field": name, "value": value, "key": key, "until": until}
                self.rows.execute("remember_unique", given)
        self._follow(key, record)
        self._retain(key, record, now)

    def put(self, key: str, old: Any, new: Any, now: int) -> None:
        """Replace the record of an entity."""
        self.rows.update(key, old, new, whole=key in self._passed)
        self._follow(key, new)
        if self._keeps_ended and self.rules.state(old) != self.rules.state(new):
            self._retain(key, new, now)

    def pass_through(self, key: str, states: Iterable[int]) -> None:
        """Let an entity pass through states, so that the guards of the file see each edge."""
        lifecycle, lease = self.rules.lifecycle, self.rules.lease
        for state in states:
            given = {"key": key, f"{RECORD}{lifecycle.status}": self.rows.codec.word[state]}
            if lease is not None and state == lease.state:
                given[f"{RECORD}{lease.owner}"] = ""
            names = [name.removeprefix(RECORD) for name in given if name != "key"]
            self.rows.write(names, given)
            self._passed.add(key)

    def drop(self, key: str) -> None:
        """Remove an entity, and all that is known of it."""
        self.rows.delete(key)
        self.rows.execute("forget_history", {"key": key})
        for name in ("forget_unique", "forget_ended"):
            if name in self._statements:
                self.rows.execute(name, {"key": key})
        self.announced.append((key, False))

    def forget(self, now: int) -> None:
        """Drop those that have ended long enough ago."""
        while keys := self.long_ended(now, _AT_ONCE):
            for key in keys:
                self.drop(key)

    def long_ended(self, now: int, most: int = 1) -> list[str]:
        """Return the keys of those that have ended long enough ago."""
        if self.rules.retained_s is None or not self._keeps_ended:
            return []
        return [key for (key,) in self.rows.execute("long_ended", {"now": now, "most": most})]

    def find_unique(self, record: Any, now: int) -> Any | None:
        """Return the entity that has one of a record's unique values; None where nothing has."""
        for name, value in unique_values(self.rules, record).items():
            if self.rules.unique[name] is None:
                given = {"value": self.rows.codec.encode(name, value)}
                found = next(self.rows.iterate(f"find_by_{name}", given), None)
                if found is not None:
                    return found[1]
                continue
            given = {"field": name, "value": value, "now": now}
            row = self.rows.execute("find_remembered", given).fetchone()
            if row is not None:
                return self.rows[row[0]]
        return None

    def deletable(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the keys and records of those whose state lets them be deleted."""
        return self.rows.iterate("deletable") if "deletable" in self._statements else iter(())

    # Ceiling and pauses.

    @property
    def ceiling_count(self) -> int:
        """How many there are in the index that has a ceiling."""
        if self._ceiling_index is None:
            return 0
        if "counted" in self._statements:
            (count,) = self.rows.execute("counted").fetchone()
            return int(count)
        words = {self.rows.codec.word[state] for state in self._ceiling_index.states}
        return sum(count for word, count in self.rows.execute("count") if word in words)

    def is_under_ceiling(self, record: Any | None) -> bool:
        """Whether a record is in the index that has a ceiling."""
        index = self._ceiling_index
        return index is not None and record is not None and is_in_index(self.rules, index, record)

    @property
    def paused(self) -> frozenset[int]:
        """The values of the field that orders claims which are not served."""
        if "paused" not in self._statements:
            return frozenset()
        return frozenset(value for (value,) in self.rows.execute("paused"))

    def pause(self, value: int) -> None:
        """Serve a value no more."""
        self.rows.execute("pause", {"value": value})

    def resume(self, value: int) -> None:
        """Serve a value again."""
        self.rows.execute("resume", {"value": value})
        self.announced.append(("", True))

    def _follow(self, key: str, record: Any) -> None:
        self.announced.append((key, is_free(self.rules, record)))

    def _retain(self, key: str, record: Any, now: int) -> None:
        """Bound those that have ended, by number and by time."""
        if not self._keeps_ended or self.rules.state(record) not in self.rules.lifecycle.terminal:
            return
        self.rows.execute("end", {"key": key, "until": forgotten_at(self.rules, now)})
        if not self._max_terminal:
            return
        (ended,) = self.rows.execute("ended").fetchone()
        for _ in range(ended - self._max_terminal):
            (first,) = self.rows.execute("first_ended").fetchone()
            self.drop(first)

    # History.

    def write_history(
        self,
        key: str,
        edge: Transition | None,
        actor: str,
        now: int,
        fence: int = 0,
        owner: str = "",
        reason: str = "",
        trace: str = "",
    ) -> None:
        """Add an entry."""
        states = self.rules.lifecycle.states
        target = self._first_state(key) if edge is None else edge.target
        given = {
            "key": key,
            "source": None if edge is None else states[edge.source],
            "target": states[target],
            "edge": None if edge is None else edge.name,
            "actor": actor,
            "fence": fence,
            "now": now,
            "owner": owner,
            # What it says is kept as it can be: the entity itself has been checked.
            "reason": str(reason).encode(errors="replace").decode(),
            "trace": trace,
        }
        self.rows.execute("remember", given)

    def _first_state(self, key: str) -> int:
        """Return the state in which a new entity begins."""
        lifecycle = self.rules.lifecycle
        state: int = self.rules.state(self.records[key]) if lifecycle.begins else lifecycle.initial
        return state

    def read_history(self, key: str, creation: str) -> list[HistoryEntry]:
        """Return the entries of an entity."""
        rows: Sequence[Any] = self.rows.execute("history", {"key": key}).fetchall()
        found = []
        for sequence, (source, target, actor, at, fence, edge, *more) in enumerate(rows, 1):
            ends = None if source is None else self._numbers[source], self._numbers[target]
            name = creation if source is None else edge or self._edge_between(*ends)
            found.append(HistoryEntry(sequence, name, *ends, actor, to_time(at), fence, *more))
        return found

    def _edge_between(self, source: int | None, target: int) -> str:
        """Return the edge between two states, where states are enough to tell: else the history has it."""
        lifecycle = self.rules.lifecycle
        edge = None if source is None or lifecycle.by_name else lifecycle.edges.get((source, target))
        return "" if edge is None else edge.name
