"""Entities as steps on a table: creating, reading, changing and deleting them."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from runtime.call.context import Call
from runtime.model.lifecycles import Transition, Update
from runtime.stores.contract import (
    CREATION,
    NOTHING,
    Compare,
    CreateResult,
    Cursor,
    Given,
    LeaseProof,
    Record,
    RecordPage,
    Transitioned,
)
from runtime.stores.semantics.creation import (
    Begun,
    begin,
    is_deletable,
    is_purgeable,
    read_ceiling,
    unique_values,
)
from runtime.stores.semantics.edges import Taken, after_update, applies, is_of_lease, take_edge
from runtime.stores.semantics.leases import equals, lease_problem
from runtime.stores.semantics.rules import Change, to_moment
from runtime.stores.steps.leases import LeaseSteps
from runtime.stores.steps.table import ListingSpan, Table
from runtime.stores.store import GuardBreach

_SCANNED = 5000
"""How many entities a page looks at; what is left is for the next one."""


class EntitySteps(LeaseSteps[Record]):
    """The entities of one kind, as frozen structs. Beyond a bound the oldest terminal ones are forgotten."""

    # Creating.

    def _create(self, record: Record, call: Call, then: Sequence[str]) -> CreateResult[Record]:
        self._require_creator(call)
        first = self._admit_first(then, call)
        result = self._create_one(record, call, self._now(), first)
        if result.is_refused:
            raise self._condition("store_full")
        return result

    def _create_many(
        self,
        records: Sequence[Record],
        call: Call,
        compare: Compare[Record] | None,
        then: Sequence[str],
    ) -> list[CreateResult[Record]]:
        self._require_creator(call)
        first = self._admit_first(then, call)
        now = self._now()
        self._table.forget(now)
        results, new = self._plan(records, compare, first, call, now)
        for made in new:
            self._add(made, call, now)
        return results

    def _create_one(
        self, record: Record, call: Call, now: int, first: Sequence[Transition]
    ) -> CreateResult[Record]:
        table, rules = self._table, self._rules
        if not self._is_timeless:
            table.forget(now)
        if rules.unique and (found := table.find_unique(record, now)) is not None:
            return CreateResult(found, False)
        self._require_new_key(rules.key(record), table.records)
        if (
            self._lifecycle.ceiling
            and (most := read_ceiling(rules)) is not None
            and table.ceiling_count >= most
        ):
            return CreateResult(record, False, True)
        made = begin(rules, record, first, now, self._world, call.caller)
        self._add(made, call, now)
        return CreateResult(made.record, True)

    def _plan(
        self,
        records: Sequence[Record],
        compare: Compare[Record] | None,
        first: Sequence[Transition],
        call: Call,
        now: int,
    ) -> tuple[list[CreateResult[Record]], list[Begun]]:
        """Say what becomes of each, and change nothing; it may raise at any of them."""
        rules, table = self._rules, self._table
        results: list[CreateResult[Record]] = []
        new: list[Begun] = []
        keys: set[str] = set()
        ahead: dict[tuple[str, Any], Record] = {}
        most, depth = read_ceiling(rules), table.ceiling_count
        for record in records:
            pairs = [*unique_values(rules, record).items()]
            found = table.find_unique(record, now)
            if found is None:
                found = next((ahead[pair] for pair in pairs if pair in ahead), None)
            if found is not None:
                if compare is not None:
                    compare(record, found)
                results.append(CreateResult(found, False))
                continue
            self._require_new_key(rules.key(record), table.records, keys)
            if most is not None and depth >= most:
                results.append(CreateResult(record, False, True))
                continue
            made = begin(rules, record, first, now, self._world, call.caller)
            depth += table.is_under_ceiling(made.record)
            keys.add(rules.key(made.record))
            ahead |= dict.fromkeys(pairs, made.record)
            new.append(made)
            results.append(CreateResult(made.record, True))
        return results, new

    def _add(self, made: Begun, call: Call, now: int) -> None:
        key: str = self._rules.key(made.created)
        self._table.add(key, made.created, now)
        note = self._history_note(None, None, made.created, call, NOTHING)
        self._table.write_history(key, None, call.caller, now, *(note or ()))
        self._audit(CREATION, key, call, self._first_note(made.created))
        if made.edges:
            self._commit(key, made.created, made.record, made.edges, call, now, is_new=True)

    def _require_new_key(self, key: str, *taken: Container[str]) -> None:
        """Raise where a text can be no key, or another entity has it."""
        if any(key in each for each in taken):
            raise GuardBreach(f"{self._entity} {key} exists already")
        if self._lifecycle.key_form is not None and not self._lifecycle.is_key(key):
            raise GuardBreach(f"{key!r} is no key of a {self._entity}")

    # Reading.

    def _find(
        self,
        table: Table,
        states: Collection[int],
        equal: Mapping[str, object],
        since: datetime | int | None,
        until: datetime | int | None,
        after: Cursor | None,
        offset: int,
        size: int,
        newest_first: bool,
    ) -> RecordPage[Record]:
        self._require_fields(equal)
        span = ListingSpan(to_moment(since), to_moment(until), after)
        found: list[Record] = []
        last: Cursor | None = None
        entries = table.listing.iterate(states, offset, newest_first=newest_first, span=span, equal=equal)
        for scanned, (at, key) in enumerate(entries):
            if len(found) == size or scanned == _SCANNED:
                return RecordPage(found, last)
            last = Cursor(at, key)
            record = table.records[key]
            if not equal or equals(record, equal):
                found.append(record)
        return RecordPage(found, None)

    def _count(self, table: Table, states: Collection[int], since: datetime | int | None) -> dict[int, int]:
        begin = to_moment(since)
        return {state: table.listing.count(state, begin) for state in states or self._lifecycle.states}

    def _take_census(self, table: Table) -> list[tuple[str, str, int, float]]:
        """Return how many entities there are in each state, and how old the oldest is."""
        listing, now = table.listing, self._now()
        rows = []
        for state, name in self._lifecycle.states.items():
            oldest = listing.oldest(state)
            age = 0.0 if oldest is None or not self._lifecycle.listed_by else max(0, now - oldest) / 1e6
            rows.append((self._entity, name, listing.count(state), age))
        return rows

    # Changing.

    def _transition(
        self,
        key: str,
        edge: str | Sequence[str],
        call: Call,
        lease: LeaseProof | None,
        owner: str,
        given: Given,
        noted: Mapping[str, str],
        is_final: bool,
    ) -> Transitioned:
        now = self._now()
        has_proof = lease is not None
        names = (edge,) if isinstance(edge, str) else edge
        changes = [self._admit(name, call, has_proof=has_proof) for name in names]
        record = old = self._require(key, now, call)
        taken: tuple[Change, ...] = ()
        for change in changes:
            if not applies(self._rules, change, record):
                state: int = self._rules.state(old)
                self._audit_ignored(change, key, call, state)
                return Transitioned(False, state)
            if lease is not None:
                self._require_proof(change, record, key, lease, now)
            if is_final:
                self._require_ending(change)
            record, more = self._take(change, record, given, now, owner or call.caller, is_final=is_final)
            taken += more
        self._commit(key, old, record, taken, call, now, given, noted)
        return Transitioned(True, self._rules.state(record))

    def _take(
        self, change: Change, record: Any, given: Given, now: int, owner: str, *, is_final: bool
    ) -> Taken:
        """Return the record after an edge or an update, and what was taken."""
        rules = self._rules
        if isinstance(change, Update):
            return Taken(after_update(rules, change, record, given, now), (change,))
        return take_edge(rules, change, record, given, now, self._world, owner=owner, is_final=is_final)

    def _require_proof(self, change: Change, record: Any, key: str, lease: LeaseProof, now: int) -> None:
        """Raise where a proof is given for a change of the leased state, and is wrong."""
        if not is_of_lease(self._rules, change, record):
            return
        if (problem := lease_problem(self._rules, record, *lease, now)) is not None:
            raise self._lease_lost(key, lease.owner, problem)

    def _update(self, key: str, changes: Mapping[str, Any]) -> Record:
        self._require_unguarded(changes)
        now = self._now()
        record = self._require(key, now)
        changed: Record = self._put(key, record, replace(record, **changes), now)
        return changed

    def _delete(self, key: str, expected: int, call: Call) -> Transitioned:
        self._require_deleter(call)
        record = self._require(key, self._now(), call)
        state: int = self._rules.state(record)
        if not is_deletable(self._rules, record, expected):
            return Transitioned(False, state)
        if held := self._held_count(key):
            raise self._condition("still_held", entity=self._entity, key=key, held=held)
        self._drop(key, call, noted={"from_status": self._lifecycle.states[state]})
        return Transitioned(True, state)

    def _purge(self, older_than_s: float, call: Call) -> int:
        self._require_deleter(call)
        now, rules = self._now(), self._rules
        self._table.forget(now)
        keys = [
            key
            for key, record in self._table.deletable()
            if is_purgeable(rules, record, older_than_s, now) and not self._held_count(key)
        ]
        for key in keys:
            self._drop(key, call)
        return len(keys)

    def _run_due(self, change: str, call: Call) -> int:
        now, done = self._now(), 0
        self._table.forget(now)
        for clock in self._admit_clock(change, call):
            done += self._run_batch(clock, now, call, self._batch_size(clock))
        return done
