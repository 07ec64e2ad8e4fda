"""Changes of entities in memory: reading one, committing what semantics made of it, and what is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.base import StoreBase
from runtime.stores.contract import DELETION, NOTHING, Given, Record
from runtime.stores.memory.table import MemoryTable
from runtime.stores.semantics.clocks import batch_size, due_given, is_due, is_in_force
from runtime.stores.semantics.edges import after_shift, take_edge
from runtime.stores.semantics.rules import Change, Clock
from runtime.stores.store import NoSuchEntity
from runtime.world import World

_ON_ACCESS = 100
"""How many due entities a claim changes first."""


class MemoryChanges(StoreBase[Record]):
    """The table of one kind of entity, and what every operation on it needs.

    `tables` are those of all entities of a process: stores of the same entity share one, and leases and
    deletions look at those of others.
    """

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any] = NOTHING,
        *,
        max_terminal: int = 0,
        tables: dict[str, MemoryTable] | None = None,
        log: Log | None = None,
    ) -> None:
        super().__init__(system, lifecycle, record, world, metrics, values)
        self._log = log
        self._tables = {} if tables is None else tables
        table = self._tables.get(lifecycle.entity)
        if table is None:
            table = MemoryTable(self._rules, self._now(), max_terminal=max_terminal)
            self._tables[lifecycle.entity] = table
            metrics.add_census(self)
        self._table = table
        self._is_timeless = self._rules.retained_s is None and not self._rules.on_access
        """Whether no entity changes or goes because of the time of an access."""

    def census(self) -> list[tuple[str, str, int, float]]:
        """Return how many entities there are in each state, and how old the oldest is."""
        listing, now = self._table.listing, self._now()
        rows = []
        for state, name in self._lifecycle.states.items():
            oldest = listing.oldest(state)
            age = 0.0 if oldest is None or not self._lifecycle.listed_by else max(0, now - oldest) / 1e6
            rows.append((self._entity, name, listing.count(state), age))
        return rows

    def _now(self) -> int:
        return self._world.now_ms() * 1000

    def _get(self, key: str, now: int, call: Call | None = None) -> Any:
        """Return a record after all that is due for it whenever it is accessed; None where there is none."""
        if not self._is_timeless:
            self._table.forget(now)
            for clock in self._rules.on_access:
                self._run_if_due(clock, key, now, call)
        return self._table.records.get(key)

    def _require(self, key: str, now: int, call: Call | None = None) -> Any:
        record = self._table.records.get(key) if self._is_timeless else self._get(key, now, call)
        if record is None:
            raise NoSuchEntity(key)
        return record

    def _commit(
        self,
        key: str,
        old: Any,
        new: Any,
        changes: Sequence[Change],
        call: Call | None,
        now: int,
        given: Given = NOTHING,
        noted: Mapping[str, Any] = NOTHING,
        actor: str = "",
    ) -> None:
        """Replace a record, and record the changes that led to it."""
        self._table.put(key, old, new, now)
        driver = actor or (call.caller if call else "")
        for change in changes:
            if isinstance(change, Transition) and key in self._table.records:
                self._write_history(key, change, old, new, driver, call, now, given)
            held = self._lease_note(change, old, new) if self._rules.lease is not None else None
            self._audit(change.name, key, call, {**held, **noted} if held else noted, actor=actor)

    def _write_history(
        self,
        key: str,
        edge: Transition | None,
        old: Any,
        new: Any,
        actor: str,
        call: Call | None,
        now: int,
        given: Given = NOTHING,
    ) -> None:
        rules, lease = self._rules, self._rules.lease
        trace: str | None = getattr(new, rules.trace) if rules.trace else None
        if not trace and call is not None and call.trace:
            trace = call.trace_id
        reason = given.get(edge.reason) if edge is not None and edge.reason else None
        if lease is None and not trace and not reason:
            self._table.write_history(key, edge, actor, now)
            return
        fence = owner = None
        if lease is not None:
            fence = getattr(new, lease.fence)
            owner = getattr(new, lease.owner) or (getattr(old, lease.owner) if old is not None else None)
        self._table.write_history(key, edge, actor, now, fence or 0, owner or "", reason or "", trace or "")

    def _lease_note(self, change: Change, old: Any, new: Any) -> dict[str, Any]:
        """Return the lease that a change takes or leaves, for the log."""
        lease = self._rules.lease
        if lease is None or not isinstance(change, Transition):
            return {}
        if lease.state == change.target:
            return {lease.owner: getattr(new, lease.owner), lease.fence: getattr(new, lease.fence)}
        if lease.state == change.source:
            return {lease.owner: getattr(old, lease.owner), lease.fence: getattr(old, lease.fence)}
        return {}

    # Due changes.

    def _run_batch(self, clock: Clock, now: int, call: Call | None, most: int) -> int:
        """Make a change to those for which it is due, at most so many; return to how many."""
        if not is_in_force(self._rules, clock.due, now, self._table.opened):
            return 0
        keys = self._held_keys() if clock.due.at is None else self._table.dues[clock.number].due(now, most)
        done = 0
        for key in keys:
            done += self._run_if_due(clock, key, now, call)
            if done >= most:
                break
        return done

    def _run_on_access(self, now: int, call: Call) -> None:
        for clock in self._rules.on_access:
            self._run_batch(clock, now, call, _ON_ACCESS)

    def _run_if_due(self, clock: Clock, key: str, now: int, call: Call | None) -> bool:
        rules, record, due = self._rules, self._table.records.get(key), clock.due
        if record is None or not is_in_force(rules, due, now, self._table.opened):
            return False
        holder = self._holder_state(record) if due.holder_in is not None else None
        if not is_due(rules, clock, record, now, holder_state=holder):
            return False
        call = call or self._own_call(due.by)
        actor = due.by if call is None or call.caller != due.by else ""
        if clock.change is None:
            if self._held_count(key):
                return False
            self._drop(key, call, actor)
            return True
        given = due_given(due, record)
        if isinstance(clock.change, Transition):
            new, changes = take_edge(rules, clock.change, record, given, now, self._world)
        else:
            new, changes = after_shift(rules, clock.change, record, given, now), (clock.change,)
        self._commit(key, record, new, changes, call, now, given, actor=actor)
        return True

    def _held_keys(self) -> list[str]:
        """Return the keys of all that is leased, in the order of creation."""
        claims = self._table.claims
        assert claims is not None, "a clock by the state of a holder needs a lease"
        found = [pair for owner in claims.owners() for pair in claims.held_by(owner).items()]
        return [key for key, _ in sorted(found, key=lambda pair: pair[1])]

    def _batch_size(self, clock: Clock) -> int:
        return batch_size(self._rules, clock.due)

    def _own_call(self, actor: str) -> Call | None:
        return None if self._log is None else Call(world=self._world, log=self._log, caller=actor)

    # Other entities.

    def _holder(self, owner: str) -> tuple[Any | None, str]:
        """Return the record of a lease's holder, and the name of its state."""
        lease = self._rules.lease
        if lease is None or lease.holder is None or lease.holder.entity not in self._tables:
            return None, ""
        table = self._tables[lease.holder.entity]
        return table.records.get(owner), table.rules.lifecycle.status

    def _holder_state(self, record: Any) -> int | None:
        lease = self._rules.lease
        holder, status = self._holder(getattr(record, lease.owner) if lease else "")
        return None if holder is None else getattr(holder, status)

    def _held_count(self, key: str) -> int:
        """Return how many leases an entity has, where `unless_holding` asks."""
        table = self._tables.get(self._lifecycle.unless_holding or "")
        return len(table.claims.held_by(key)) if table is not None and table.claims is not None else 0

    def _drop(self, key: str, call: Call | None, actor: str = "", noted: Mapping[str, Any] = NOTHING) -> None:
        self._table.drop(key)
        self._audit(DELETION, key, call, noted, actor=actor)
