"""Changes of entities in a table: reading one, committing what semantics made of it, and what is due."""

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
from runtime.stores.semantics.clocks import batch_size, due_given, is_due, is_in_force
from runtime.stores.semantics.edges import after_update, take_edge
from runtime.stores.semantics.rules import Change, Clock, revised
from runtime.stores.steps.table import Table
from runtime.stores.store import NoSuchEntity
from runtime.world import World

_ON_ACCESS = 100
"""How many due entities a claim changes first."""


class ChangeSteps(StoreBase[Record]):
    """The table of one kind of entity, and what every step on it needs.

    A step is synchronous: nothing is awaited between its first read and its last write. `_tables` are those
    of all entities that a step can see: leases and deletions look at those of others.
    """

    _table: Table
    _tables: Mapping[str, Table]

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any] = NOTHING,
        *,
        log: Log | None = None,
    ) -> None:
        super().__init__(system, lifecycle, record, world, metrics, values)
        self._log = log
        self._is_timeless = self._rules.retained_s is None and not self._rules.on_access
        """Whether no entity changes or goes because of the time of an access."""

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
        *,
        is_new: bool = False,
    ) -> Any:
        """Replace a record, record the changes that led to it, and return it as it was written.

        The edges of a new entity belong to the step of its creation, which is one write.
        """
        if is_new:
            self._table.put(key, old, new, now)
        else:
            new = self._put(key, old, new, now)
        driver = actor or (call.caller if call else "")
        for change in changes:
            if isinstance(change, Transition) and key in self._table.records:
                note = self._history_note(change, old, new, call, given)
                self._table.write_history(key, change, driver, now, *(note or ()))
            held = self._lease_note(change, old, new) if self._rules.lease is not None else None
            self._audit(change, key, call, {**held, **noted} if held else noted, actor=actor)
        return new

    def _put(self, key: str, old: Any, new: Any, now: int) -> Any:
        new = revised(self._rules, old, new)
        self._table.put(key, old, new, now)
        return new

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
            new, changes = after_update(rules, clock.change, record, given, now), (clock.change,)
        self._commit(key, record, new, changes, call, now, given, actor=actor)
        return True

    def _held_keys(self) -> list[str]:
        """Return the keys of all that is leased, in their order."""
        claims = self._table.claims
        assert claims is not None, "a clock by the state of a holder needs a lease"
        return claims.held()

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
