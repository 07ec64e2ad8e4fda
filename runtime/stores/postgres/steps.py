"""Steps: lock entities, compute their next records by the semantics, and write them, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from runtime.call.context import Call
from runtime.model.lifecycles import Transition, Update
from runtime.stores.batch import Batch
from runtime.stores.contract import DELETION, NOTHING, Given, LeaseProof, Record, Transitioned
from runtime.stores.postgres.codec import storable
from runtime.stores.postgres.context import Connection, PostgresContext, moment_of
from runtime.stores.semantics.clocks import due_given, is_due, is_in_force
from runtime.stores.semantics.creation import is_deletable
from runtime.stores.semantics.edges import after_update, applies, is_of_lease, take_steps
from runtime.stores.semantics.leases import LOST, lease_problem
from runtime.stores.semantics.rules import Change, Clock, revised
from runtime.stores.store import GuardBreach, NoSuchEntity, Unstorable

PURGED_AT_ONCE = 5000
"""Batch size of a purge; each batch scans past all entities that ended since, so batches are large."""


class StepOutcome(NamedTuple):
    """The changes of an entity, each with the record after it, and their arguments."""

    old: Any
    changes: tuple[tuple[Change, Any], ...]
    given: Given = NOTHING
    requested: tuple[str, ...] = ()
    """The requested changes; any other is a dead letter."""

    @property
    def record(self) -> Any:
        return self.changes[-1][1]


class TransitionRequest(NamedTuple):
    """A transition in a batch."""

    key: str
    given: Given
    owner: str


class TransitionOutcome(NamedTuple):
    """The record before a transition, and its outcome; None where the transition does not apply."""

    record: Any
    outcome: StepOutcome | None


class PostgresSteps(PostgresContext[Record]):
    """Changes of entities outside the hot path."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._batches: dict[tuple[str, str], Batch[TransitionRequest, TransitionOutcome | None]] = {}

    # Changing.

    async def transition(
        self,
        key: str,
        edge: str | Sequence[str],
        call: Call,
        *,
        lease: LeaseProof | None = None,
        owner: str = "",
        given: Given = NOTHING,
        noted: Mapping[str, str] = NOTHING,
        is_final: bool = False,
    ) -> Transitioned:
        has_proof = lease is not None
        names = (edge,) if isinstance(edge, str) else edge
        changes = [self._admit(name, call, has_proof=has_proof) for name in names]
        own = self._require_key(key)
        await self._access(own, call)
        if len(changes) == 1 and isinstance(changes[0], Transition) and not (has_proof or is_final):
            request = TransitionRequest(own, _storable(given), owner or call.caller)
            shared = await self._transition_batched(changes[0], request, call)
            if shared is not None:
                return self._conclude(shared, changes[0], key, call, noted)
        async with self._transaction() as connection:
            record, now = await self._lock(connection, own)
            outcome: StepOutcome | None = StepOutcome(record, (), _storable(given))
            for change in changes:
                assert outcome is not None
                last = outcome.record if outcome.changes else record
                if not applies(self._rules, change, last):
                    outcome = None
                    break
                if lease is not None:
                    self._require_proof(change, last, key, lease, now)
                if is_final:
                    self._require_ending(change)
                outcome = self._apply(outcome, change, now, owner or call.caller, is_final=is_final)
            if outcome is not None and not await self._write(connection, call.caller, [outcome], call):
                raise self._lease_lost(key, lease.owner if lease else "", LOST)
        return self._conclude(TransitionOutcome(record, outcome), change, key, call, noted)

    def _conclude(
        self, concluded: TransitionOutcome, change: Change, key: str, call: Call, noted: Mapping[str, str]
    ) -> Transitioned:
        record, outcome = concluded
        state: int = self._rules.state(record if outcome is None else outcome.record)
        if outcome is None:
            self._audit_ignored(change, key, call, state)
        else:
            self._audit_outcome(outcome, call, noted)
        return Transitioned(outcome is not None, state)

    # Batched transitions.

    async def _transition_batched(
        self, edge: Transition, request: TransitionRequest, call: Call
    ) -> TransitionOutcome | None:
        """Apply a transition in a batch; None where it needs a transaction of its own."""
        batch = self._batches.get((edge.name, call.caller))
        if batch is None:
            batch = self._batches[edge.name, call.caller] = Batch(
                partial(self._apply_batch, edge, call.caller), concurrency=2
            )
        return await batch(request)

    async def _apply_batch(
        self, edge: Transition, actor: str, requests: Sequence[TransitionRequest]
    ) -> Sequence[TransitionOutcome | None]:
        """Apply one edge to many entities in one step; None for those that are locked or missing."""
        first = {each.key: each for each in reversed(requests)}
        concluded: dict[str, TransitionOutcome] = {}
        try:
            async with self._transaction() as connection:
                for row in await self._run_in(connection, "lock_free", keys=[*first]):
                    record, now = self._codec.decode(row), moment_of(row)
                    each = first[self._codec.as_key(self._rules.key(record))]
                    outcome = None
                    if applies(self._rules, edge, record):
                        begun = StepOutcome(record, (), each.given)
                        outcome = self._apply(begun, edge, now, each.owner, is_final=False)
                    concluded[each.key] = TransitionOutcome(record, outcome)
                written = [each.outcome for each in concluded.values() if each.outcome is not None]
                if not await self._write(connection, actor, written, None):
                    raise GuardBreach("some were too late")
        except (Unstorable, GuardBreach):
            return [None] * len(requests)  # One of them is the cause: each gets its own transaction.
        return [concluded.get(each.key) if each is first[each.key] else None for each in requests]

    async def update(self, key: str, /, **changes: Any) -> Record:
        self._require_unguarded(changes)
        own = self._require_key(key)
        await self._access(own)
        async with self._transaction() as connection:
            record, _ = await self._lock(connection, own)
            changed = revised(self._rules, record, replace(record, **changes))
            rows = await self._run_in(connection, "update", rows=self._codec.encode([changed]))
        return self._codec.decode(rows[0])

    async def delete(self, key: str, expected: int, call: Call) -> Transitioned:
        self._require_deleter(call)
        own = self._require_key(key)
        await self._access(own, call)
        async with self._transaction() as connection:
            record, _ = await self._lock(connection, own)
            state: int = self._rules.state(record)
            if not is_deletable(self._rules, record, expected):
                return Transitioned(False, state)
            held = (await self._run_in(connection, "held", key=own))[0][0] if self._holds_others else 0
            if held:
                raise self._condition("still_held", entity=self._entity, key=key, held=held)
            await self._delete(connection, [record], call.caller)
        self._audit(DELETION, key, call, {"from_status": self._lifecycle.states[state]})
        return Transitioned(True, state)

    async def purge(self, older_than_s: float, call: Call) -> int:
        self._require_deleter(call)
        await self._forget()
        purged, is_over = 0, "purge" not in self._statements
        while not is_over:
            work = self._run("purge", actor=call.caller, older_than=float(older_than_s), most=PURGED_AT_ONCE)
            rows = await self._answer(work)
            for row in rows:
                self._audit(DELETION, str(row[0]), call)
            purged += len(rows)
            is_over = len(rows) < PURGED_AT_ONCE
        return purged

    # Accesses.

    async def _access(self, key: str, call: Call | None = None) -> None:
        """Apply the transitions of an entity that are due on access, and remove ended entities if due."""
        if self._is_timeless:
            return
        await self._forget()
        for clock in self._rules.on_access:
            async with self._transaction() as connection:
                rows = await self._run_in(connection, "lock", keys=[key])
                due = [row for row in rows if self._is_due(clock, row)]
                outcomes = await self._drive(connection, clock, due)
            self._audit_driven(clock, outcomes, call)

    def _is_due(self, clock: Clock, row: Any) -> bool:
        now = moment_of(row)
        is_now = is_in_force(self._rules, clock.due, now, self._opened)
        return is_now and is_due(self._rules, clock, self._codec.decode(row), now)

    async def _forget(self) -> None:
        """Delete ended entities beyond their retention time or number, if a sweep is due."""
        retention, now_ms = self._retention, self._world.now_ms()
        if "forget" in self._statements and retention.is_due(now_ms):
            work = self._run("forget", seconds=retention.seconds, most=retention.most or None)
            retention.note_sweep(now_ms, (await self._answer(work))[0][0])

    # Due changes.

    async def _drive(self, connection: Connection, clock: Clock, rows: Sequence[Any]) -> list[StepOutcome]:
        """Apply a due change to locked entities."""
        if not rows:
            return []
        records = [self._codec.decode(row) for row in rows]
        if clock.change is None:
            await self._delete(connection, records, clock.due.by)
            return [StepOutcome(record, ()) for record in records]
        outcomes = [
            self._apply(
                StepOutcome(record, (), due_given(clock.due, record)),
                clock.change,
                moment_of(row),
                "",
                is_final=False,
            )
            for row, record in zip(rows, records, strict=True)
        ]
        await self._write(connection, clock.due.by, outcomes, None)
        return outcomes

    def _audit_driven(self, clock: Clock, outcomes: Sequence[StepOutcome], call: Call | None) -> None:
        actor = clock.due.by if call is None or call.caller != clock.due.by else ""
        lease = self._rules.lease
        for each in outcomes:
            if clock.change is None:
                self._audit(DELETION, self._rules.key(each.old), call, actor=actor)
                continue
            self._audit_outcome(each, call, actor=actor)
            if lease is not None and self._rules.state(each.old) == lease.state:
                self._measures.lease_expired()

    # Parts of a step.

    async def _lock(self, connection: Connection, key: str) -> tuple[Any, int]:
        """Lock an entity; return its record and the time of the server."""
        rows = await self._run_in(connection, "lock", keys=[key])
        if not rows:
            raise NoSuchEntity(key)
        return self._codec.decode(rows[0]), moment_of(rows[0])

    def _apply(
        self, outcome: StepOutcome, change: Change, now: int, owner: str, *, is_final: bool
    ) -> StepOutcome:
        """Add one more edge or update to an outcome."""
        rules, (old, before, given, requested) = self._rules, outcome
        last = outcome.record if before else old
        if isinstance(change, Update):
            more: tuple[tuple[Change, Any], ...] = ((change, after_update(rules, change, last, given, now)),)
        else:
            steps = take_steps(rules, change, last, given, now, self._world, owner=owner, is_final=is_final)
            more = tuple((each.edge, each.record) for each in steps)
        return StepOutcome(old, (*before, *more), given, (*requested, change.name))

    async def _write(
        self,
        connection: Connection,
        actor: str,
        outcomes: Sequence[StepOutcome],
        call: Call | None,
        *,
        is_new: bool = False,
    ) -> bool:
        """Write outcomes edge by edge; return whether all of them were written."""
        trace = call.trace_id if call is not None and call.trace else ""
        depth = max((len(each.changes) for each in outcomes), default=0)
        for level in range(depth):
            groups: dict[tuple[str, str], list[Any]] = {}
            for old, changes, given, _ in outcomes:
                if level >= len(changes):
                    continue
                change, record = changes[level]
                named = change.reason if isinstance(change, Transition) else None
                reason = given.get(named) if named else None
                made = record if is_new else revised(self._rules, old, record)
                groups.setdefault((change.name, reason or ""), []).append(made)
            for (name, reason), records in groups.items():
                rows = await self._run_in(
                    connection,
                    "write",
                    actor=actor,
                    edge=name,
                    reason=reason,
                    trace=trace,
                    rows=self._codec.encode(records),
                )
                if len(rows) < len(records):
                    return False
        return True

    async def _delete(self, connection: Connection, records: Sequence[Any], actor: str) -> None:
        codec, rules = self._codec, self._rules
        keys = [codec.as_key(rules.key(each)) for each in records]
        states = [codec.state_name(rules.state(each)) for each in records]
        await self._run_in(connection, "delete", actor=actor, keys=keys, states=states)

    def _audit_outcome(
        self, outcome: StepOutcome, call: Call | None, noted: Mapping[str, Any] = NOTHING, *, actor: str = ""
    ) -> None:
        """Count and log every change of an entity."""
        rules, lease, before = self._rules, self._rules.lease, outcome.old
        key = rules.key(outcome.old)
        for change, record in outcome.changes:
            held: dict[str, Any] = {}
            if lease is not None and isinstance(change, Transition):
                holder = record if change.target == lease.state else before
                if lease.state in (change.source, change.target):
                    held = {name: getattr(holder, name) for name in (lease.owner, lease.fence)}
            if change.name not in outcome.requested:
                self._measures.given_up()
            self._audit(change, key, call, {**held, **noted}, actor=actor)
            before = record

    def _require_proof(self, change: Change, record: Any, key: str, lease: LeaseProof, now: int) -> None:
        """Raise LeaseLost for a wrong proof of a change of the leased state."""
        if not is_of_lease(self._rules, change, record):
            return
        if (problem := lease_problem(self._rules, record, *lease, now)) is not None:
            self._measures.lease_lost()
            raise self._lease_lost(key, lease.owner, problem)

    def _require_ending(self, edge: Change) -> None:
        if not isinstance(edge, Transition) or edge.dead_letter is None:
            raise GuardBreach(f"{edge.name} is never the last try of a {self._entity}")

    @property
    def _holds_others(self) -> bool:
        return "held" in self._statements


def _storable(arguments: Given) -> Given:
    """Return arguments with texts that the database accepts."""
    return {name: storable(value) if isinstance(value, str) else value for name, value in arguments.items()}
