"""Steps: lock entities, let the semantics say what becomes of them, and write that, in one transaction."""

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
"""Each look passes by all that ended since, so the looks are few."""


class StepOutcome(NamedTuple):
    """What becomes of an entity: each change, with the record after it, and what it was given."""

    old: Any
    changes: tuple[tuple[Change, Any], ...]
    given: Given = NOTHING
    asked: tuple[str, ...] = ()
    """The changes that were asked for: others have ended the entity."""

    @property
    def record(self) -> Any:
        return self.changes[-1][1]


class TransitionRequest(NamedTuple):
    """A transition that is asked for together with others."""

    key: str
    given: Given
    owner: str


class Concluded(NamedTuple):
    """The record as it was, and what became of it; None where the change does not apply."""

    record: Any
    taken: StepOutcome | None


class PostgresSteps(PostgresContext[Record]):
    """Changes of entities that are not on the hot path."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._shared: dict[tuple[str, str], Batch[TransitionRequest, Concluded | None]] = {}

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
            asked = TransitionRequest(own, _storable(given), owner or call.caller)
            shared = await self._share(changes[0], asked, call)
            if shared is not None:
                return self._conclude(shared, changes[0], key, call, noted)
        async with self._transaction() as connection:
            record, now = await self._lock(connection, own)
            taken: StepOutcome | None = StepOutcome(record, (), _storable(given))
            for change in changes:
                assert taken is not None
                last = taken.record if taken.changes else record
                if not applies(self._rules, change, last):
                    taken = None
                    break
                if lease is not None:
                    self._require_proof(change, last, key, lease, now)
                if is_final:
                    self._require_ending(change)
                taken = self._take(taken, change, now, owner or call.caller, is_final=is_final)
            if taken is not None and not await self._write(connection, call.caller, [taken], call):
                raise self._lease_lost(key, lease.owner if lease else "", LOST)
        return self._conclude(Concluded(record, taken), change, key, call, noted)

    def _conclude(
        self, concluded: Concluded, change: Change, key: str, call: Call, noted: Mapping[str, str]
    ) -> Transitioned:
        record, taken = concluded
        state: int = self._rules.state(record if taken is None else taken.record)
        if taken is None:
            self._audit_ignored(change, key, call, state)
        else:
            self._audit_taken(taken, call, noted)
        return Transitioned(taken is not None, state)

    # Transitions of many at once.

    async def _share(self, edge: Transition, asked: TransitionRequest, call: Call) -> Concluded | None:
        """Take an edge together with others; None where that has to be done alone."""
        batch = self._shared.get((edge.name, call.caller))
        if batch is None:
            batch = self._shared[edge.name, call.caller] = Batch(
                partial(self._take_together, edge, call.caller), concurrency=2
            )
        return await batch(asked)

    async def _take_together(
        self, edge: Transition, actor: str, asked: Sequence[TransitionRequest]
    ) -> Sequence[Concluded | None]:
        """Take an edge for many in one step; None for those that another has locked, or that are gone."""
        first = {each.key: each for each in reversed(asked)}
        concluded: dict[str, Concluded] = {}
        try:
            async with self._transaction() as connection:
                for row in await self._run_in(connection, "lock_free", keys=[*first]):
                    record, now = self._codec.decode(row), moment_of(row)
                    each = first[self._codec.as_key(self._rules.key(record))]
                    taken = None
                    if applies(self._rules, edge, record):
                        begun = StepOutcome(record, (), each.given)
                        taken = self._take(begun, edge, now, each.owner, is_final=False)
                    concluded[each.key] = Concluded(record, taken)
                written = [each.taken for each in concluded.values() if each.taken is not None]
                if not await self._write(connection, actor, written, None):
                    raise GuardBreach("some were too late")
        except (Unstorable, GuardBreach):
            return [None] * len(asked)  # It is about one of them.
        return [concluded.get(each.key) if each is first[each.key] else None for each in asked]

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
        """Make what is due for an entity whenever it is accessed, and drop what has ended long enough ago."""
        if self._is_timeless:
            return
        await self._forget()
        for clock in self._rules.on_access:
            async with self._transaction() as connection:
                rows = await self._run_in(connection, "lock", keys=[key])
                due = [row for row in rows if self._is_due(clock, row)]
                taken = await self._drive(connection, clock, due)
            self._audit_driven(clock, taken, call)

    def _is_due(self, clock: Clock, row: Any) -> bool:
        now = moment_of(row)
        is_now = is_in_force(self._rules, clock.due, now, self._opened)
        return is_now and is_due(self._rules, clock, self._codec.decode(row), now)

    async def _forget(self) -> None:
        """Delete those that have ended long enough ago, or before the last so many."""
        retention, now_ms = self._retention, self._world.now_ms()
        if "forget" in self._statements and retention.is_due(now_ms):
            work = self._run("forget", seconds=retention.seconds, most=retention.most or None)
            retention.looked(now_ms, (await self._answer(work))[0][0])

    # Due changes.

    async def _drive(self, connection: Connection, clock: Clock, rows: Sequence[Any]) -> list[StepOutcome]:
        """Make a change to locked entities for which it is due."""
        if not rows:
            return []
        records = [self._codec.decode(row) for row in rows]
        if clock.change is None:
            await self._delete(connection, records, clock.due.by)
            return [StepOutcome(record, ()) for record in records]
        taken = [
            self._take(
                StepOutcome(record, (), due_given(clock.due, record)),
                clock.change,
                moment_of(row),
                "",
                is_final=False,
            )
            for row, record in zip(rows, records, strict=True)
        ]
        await self._write(connection, clock.due.by, taken, None)
        return taken

    def _audit_driven(self, clock: Clock, taken: Sequence[StepOutcome], call: Call | None) -> None:
        actor = clock.due.by if call is None or call.caller != clock.due.by else ""
        lease = self._rules.lease
        for each in taken:
            if clock.change is None:
                self._audit(DELETION, self._rules.key(each.old), call, actor=actor)
                continue
            self._audit_taken(each, call, actor=actor)
            if lease is not None and self._rules.state(each.old) == lease.state:
                self._measures.lease_expired()

    # Parts of a step.

    async def _lock(self, connection: Connection, key: str) -> tuple[Any, int]:
        """Lock an entity; return its record and the moment."""
        rows = await self._run_in(connection, "lock", keys=[key])
        if not rows:
            raise NoSuchEntity(key)
        return self._codec.decode(rows[0]), moment_of(rows[0])

    def _take(
        self, taken: StepOutcome, change: Change, now: int, owner: str, *, is_final: bool
    ) -> StepOutcome:
        """Return what becomes of an entity after one more edge or update."""
        rules, (old, before, given, asked) = self._rules, taken
        last = taken.record if before else old
        if isinstance(change, Update):
            more: tuple[tuple[Change, Any], ...] = ((change, after_update(rules, change, last, given, now)),)
        else:
            steps = take_steps(rules, change, last, given, now, self._world, owner=owner, is_final=is_final)
            more = tuple((each.edge, each.record) for each in steps)
        return StepOutcome(old, (*before, *more), given, (*asked, change.name))

    async def _write(
        self,
        connection: Connection,
        actor: str,
        taken: Sequence[StepOutcome],
        call: Call | None,
        *,
        is_new: bool = False,
    ) -> bool:
        """Write what becomes of entities, edge by edge; whether all of it was written."""
        trace = call.trace_id if call is not None and call.trace else ""
        depth = max((len(each.changes) for each in taken), default=0)
        for level in range(depth):
            groups: dict[tuple[str, str], list[Any]] = {}
            for old, changes, given, _ in taken:
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

    def _audit_taken(
        self, taken: StepOutcome, call: Call | None, noted: Mapping[str, Any] = NOTHING, *, actor: str = ""
    ) -> None:
        """Count and log every change of an entity."""
        rules, lease, before = self._rules, self._rules.lease, taken.old
        key = rules.key(taken.old)
        for change, record in taken.changes:
            held: dict[str, Any] = {}
            if lease is not None and isinstance(change, Transition):
                holder = record if change.target == lease.state else before
                if lease.state in (change.source, change.target):
                    held = {name: getattr(holder, name) for name in (lease.owner, lease.fence)}
            if change.name not in taken.asked:
                self._measures.given_up()
            self._audit(change, key, call, {**held, **noted}, actor=actor)
            before = record

    def _require_proof(self, change: Change, record: Any, key: str, lease: LeaseProof, now: int) -> None:
        """Raise where a proof is given for a change of the leased state, and is wrong."""
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


def _storable(given: Given) -> Given:
    """Return what was given with texts that the database takes."""
    return {name: storable(value) if isinstance(value, str) else value for name, value in given.items()}
