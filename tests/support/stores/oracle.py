"""An independent slow store: a list of records, looked through from its beginning for every question.

It is made of the functions of the semantics alone. What an engine answers must be what this one answers, so
that indexes, heaps and everything else an engine has to be fast are proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from runtime.model.lifecycles import Lifecycle, Transition, Update
from runtime.stores.contract import DELETION, LeaseProof, LeaseSettlement
from runtime.stores.semantics import clocks, creation, edges, leases
from runtime.stores.semantics.rules import Change, Clock, Rules, prepare_rules, revised
from runtime.world import World

ON_ACCESS = 100


class Refusal(Exception):
    """What the contract says is raised, by a role or the name of an exception."""


class Row:
    """One entity: its record, and what is known beside it."""

    def __init__(self, record: Any) -> None:
        self.record = record
        self.history: list[tuple[str, str, int | None, int]] = []
        """Name, actor, source and target of each change of state."""
        self.forgotten_at: int | None = None


class Oracle:
    """The entities of one kind."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        world: World,
        values: Mapping[str, Any],
        others: dict[str, Oracle],
        max_terminal: int = 0,
        *,
        by_creation: bool = False,
        rules: Rules | None = None,
    ) -> None:
        assert lifecycle.record is not None
        self.by_creation = by_creation
        """Whether those of equal age are claimed in the order of their creation, which that of `rows` is."""
        self.rules = rules or prepare_rules(lifecycle, lifecycle.record, values)
        self.lifecycle, self.world, self.others = lifecycle, world, others
        self.opened = self.now()
        self.rows: list[Row] = []
        self.ended: list[Row] = []
        self.max_terminal = max_terminal
        self.remembered: list[tuple[str, Any, Row, int | None]] = []
        self.paused: frozenset[int] = frozenset()
        others[lifecycle.entity] = self

    def now(self) -> int:
        return self.world.now_ms() * 1000

    # Rows.

    def row(self, key: str) -> Row | None:
        return next((row for row in self.rows if self.rules.key(row.record) == key), None)

    def forget(self) -> None:
        for row in [*self.rows]:
            if row.forgotten_at is not None and row.forgotten_at <= self.now():
                self.drop(row)

    def drop(self, row: Row) -> None:
        self.rows.remove(row)
        self.ended = [each for each in self.ended if each is not row]

    def touch(self, key: str) -> Row | None:
        self.forget()
        for clock in self.rules.on_access:
            if (row := self.row(key)) is not None:
                self.drive(clock, row)
        return self.row(key)

    def require(self, key: str) -> Row:
        row = self.touch(key)
        if row is None:
            raise Refusal("NoSuchEntity")
        return row

    def put(
        self, row: Row, record: Any, changes: Sequence[Change], actor: str, *, is_new: bool = False
    ) -> None:
        before = self.rules.state(row.record)
        row.record = record if is_new else revised(self.rules, row.record, record)
        edges_taken = [each for each in changes if isinstance(each, Transition)]
        row.history += [(each.name, actor, each.source, each.target) for each in edges_taken]
        if before != self.rules.state(record):
            self.retain(row)

    def retain(self, row: Row) -> None:
        if self.rules.state(row.record) in self.lifecycle.terminal:
            self.ended.append(row)
            row.forgotten_at = creation.forgotten_at(self.rules, self.now())
            while self.max_terminal and len(self.ended) > self.max_terminal:
                self.drop(self.ended[0])

    # Creating.

    def create_many(
        self, records: Sequence[Any], caller: str, then: Sequence[str] = ()
    ) -> list[tuple[Any, bool, bool]]:
        if caller not in self.lifecycle.creators:
            raise Refusal("permission_denied")
        for name in then:
            if isinstance(self.admit(name, caller, has_proof=False), Update):
                raise Refusal("GuardBreach")
        self.forget()
        before = [*self.rows], [*self.ended], [*self.remembered]
        try:
            return [self.create(record, caller, then) for record in records]
        except Refusal:
            self.rows, self.ended, self.remembered = before
            raise

    def create(self, record: Any, caller: str, then: Sequence[str] = ()) -> tuple[Any, bool, bool]:
        found = self.find_unique(record)
        if found is not None:
            return found.record, False, False
        if self.row(self.rules.key(record)) is not None or not self.lifecycle.is_key(self.rules.key(record)):
            raise Refusal("GuardBreach")
        most, ceiling = creation.read_ceiling(self.rules), self.lifecycle.ceiling
        if most is not None and ceiling is not None:
            index = self.rules.indexes[ceiling.index]
            if sum(leases.is_in_index(self.rules, index, row.record) for row in self.rows) >= most:
                return record, False, True
        now = self.now()
        row = Row(creation.created(self.rules, record, now))
        row.history.append(("create", caller, None, self.rules.state(row.record)))
        self.rows.append(row)
        for name, value in creation.unique_values(self.rules, row.record).items():
            self.remembered.append((name, value, row, creation.unique_until(self.rules, name, now)))
        self.retain(row)
        for name in then:
            edge = self.rules.edges[name]
            if not edges.applies(self.rules, edge, row.record):
                raise Refusal("GuardBreach")
            made = edges.take_edge(self.rules, edge, row.record, {}, now, self.world, owner=caller)
            self.put(row, *made, caller, is_new=True)
        return row.record, True, False

    def find_unique(self, record: Any) -> Row | None:
        for name, value in creation.unique_values(self.rules, record).items():
            for known, other, found, until in reversed(self.remembered):
                row: Row = found
                is_same = (known, other) == (name, value) and row in self.rows
                if is_same and (until is None or until > self.now()):
                    return row
        return None

    # Changing.

    def admit(self, name: str, caller: str, *, has_proof: bool) -> Change:
        change = self.rules.changes[name]
        if caller not in change.actors:
            raise Refusal("permission_denied")
        proof = edges.needs_proof(self.rules, change, caller)
        is_of_clock = not proof and edges.is_of_clock(self.rules, change, caller)
        is_end = edges.only_ends_failures(self.rules, change, caller)
        if is_of_clock or is_end or (proof and not has_proof):
            raise Refusal("GuardBreach")
        return change

    def transition(
        self, key: str, name: str, caller: str, proof: LeaseProof | None, given: Mapping[str, Any]
    ) -> tuple[bool, int]:
        change = self.admit(name, caller, has_proof=proof is not None)
        row = self.require(key)
        if not edges.applies(self.rules, change, row.record):
            return False, self.rules.state(row.record)
        if proof is not None and edges.is_of_lease(self.rules, change, row.record):
            self.check_proof(row.record, proof)
        if isinstance(change, Update):
            self.put(row, edges.after_update(self.rules, change, row.record, given, self.now()), (), caller)
        else:
            made = edges.take_edge(
                self.rules, change, row.record, given, self.now(), self.world, owner=caller
            )
            self.put(row, *made, caller)
        return True, self.rules.state(row.record)

    def check_proof(self, record: Any, proof: LeaseProof) -> None:
        problem = leases.lease_problem(self.rules, record, *proof, self.now())
        if problem is not None:
            raise Refusal(f"lease_{problem}")

    def update(self, key: str, changes: Mapping[str, Any]) -> Any:
        if self.rules.guarded & changes.keys():
            raise Refusal("GuardBreach")
        row = self.require(key)
        self.put(row, replace(row.record, **changes), (), "")
        return row.record

    def delete(self, key: str, expected: int, caller: str) -> tuple[bool, int]:
        if caller not in self.lifecycle.deleters:
            raise Refusal("permission_denied")
        row = self.require(key)
        state = self.rules.state(row.record)
        if not creation.is_deletable(self.rules, row.record, expected):
            return False, state
        if self.held_count(key):
            raise Refusal("still_held")
        self.drop(row)
        return True, state

    def purge(self, older_than_s: float, caller: str) -> int:
        if caller not in self.lifecycle.deleters:
            raise Refusal("permission_denied")
        self.forget()
        old = [
            row
            for row in self.rows
            if creation.is_purgeable(self.rules, row.record, older_than_s, self.now())
            and not self.held_count(self.rules.key(row.record))
        ]
        for row in old:
            self.drop(row)
        return len(old)

    def held_count(self, key: str) -> int:
        other = self.others.get(self.lifecycle.unless_holding or "")
        return len(other.held_by(key)) if other is not None else 0

    # Leases.

    def held_by(self, owner: str) -> list[Row]:
        lease = self.rules.lease
        if lease is None:
            return []
        held = [row for row in self.rows if self.rules.state(row.record) == lease.state]
        return [row for row in held if (getattr(row.record, lease.owner) or "") == owner]

    def holder(self, owner: str) -> tuple[Any | None, str]:
        lease = self.rules.lease
        if lease is None or lease.holder is None:
            return None, ""
        other = self.others[lease.holder.entity]
        row = other.row(owner)
        return (row.record if row else None), other.lifecycle.status

    def claim(self, owner: str, count: int, caller: str, where: Mapping[str, Any], able: Any) -> list[Any]:
        rules, now, edge = self.rules, self.now(), self.rules.entering
        if edge is None:
            raise Refusal("GuardBreach")
        if caller not in edge.actors:
            raise Refusal("permission_denied")
        self.forget()
        for clock in rules.on_access:
            self.run_clock(clock, ON_ACCESS)
        holder, status = self.holder(owner)
        free = leases.room(rules, holder, status, len(self.held_by(owner)), count)
        offered = leases.offers(rules, holder, able)
        fitting = [
            row
            for row in self.rows
            if leases.is_free(rules, row.record)
            and leases.free_at(rules, row.record) <= now
            and not leases.is_paused(rules, row.record, self.paused)
            and leases.is_able(leases.needs(rules, row.record), offered)
            and leases.equals(row.record, where)
        ]
        fitting.sort(key=self.claim_order)
        claimed = []
        for row in fitting[: max(free, 0)]:
            made = edges.take_edge(rules, edge, row.record, {}, now, self.world, owner=owner)
            self.put(row, *made, caller)
            claimed.append(row.record)
        return claimed

    def backlog(self) -> dict[int, tuple[int, float]]:
        rules, now = self.rules, self.now()
        if rules.lease is None:
            raise Refusal("GuardBreach")
        self.forget()
        found = {}
        for rank, value in enumerate(rules.lease.claim_order or (0,)):
            ages = [
                now - leases.claim_age(rules, row.record)
                for row in self.rows
                if leases.is_free(rules, row.record)
                and leases.free_at(rules, row.record) <= now
                and leases.claim_rank(rules, row.record) == rank
            ]
            found[value] = (len(ages), max([0, *ages]) / 1e6)
        return found

    def claim_order(self, row: Row) -> tuple[int, int, str]:
        rank = leases.claim_rank(self.rules, row.record)
        tie = "" if self.by_creation else self.rules.key(row.record)
        return (rank or 0, leases.claim_age(self.rules, row.record), tie)

    def renew(self, key: str, proof: LeaseProof) -> Any:
        lease = self.rules.lease
        if lease is None:
            raise Refusal("GuardBreach")
        row = self.touch(key)
        if row is None or leases.lease_problem(self.rules, row.record, *proof, self.now()):
            return None
        self.put(row, leases.after_renewal(self.rules, lease, row.record, self.now()), (), "")
        return row.record

    def settle(self, asked: LeaseSettlement, caller: str) -> int:
        edge = self.admit(asked.edge, caller, has_proof=True)
        lease = self.rules.lease
        if not isinstance(edge, Transition) or lease is None or lease.state not in edge.sources:
            raise Refusal("GuardBreach")
        if asked.is_final and edge.dead_letter is None:
            raise Refusal("GuardBreach")
        row = self.touch(asked.key)
        if row is None:
            raise Refusal("lease_lost")
        self.check_proof(row.record, asked.lease)
        if not edges.applies(self.rules, edge, row.record):
            raise Refusal("lease_lost")
        made = edges.take_edge(
            self.rules, edge, row.record, asked.given, self.now(), self.world, is_final=asked.is_final
        )
        self.put(row, *made, caller)
        state: int = self.rules.state(row.record)
        return state

    # Due changes.

    def run_due(self, name: str, caller: str) -> int:
        found = clocks.clocks_of(self.rules, name, DELETION)
        if not found:
            raise Refusal("GuardBreach")
        own = [each for each in found if each.due.by == caller]
        if not own:
            raise Refusal("permission_denied")
        self.forget()
        return sum(self.run_clock(each, clocks.batch_size(self.rules, each.due)) for each in own)

    def run_clock(self, clock: Clock, most: int) -> int:
        if clock.due.at is None:
            due, bound = sorted(self.rows, key=lambda row: str(self.rules.key(row.record))), most
        else:
            due = [row for row in self.rows if self.is_due(clock, row)]
            due.sort(key=lambda row: self.due_order(clock, row))
            due, bound = due[:most], most
        done = 0
        for row in due:
            if done < bound:
                done += self.drive(clock, row)
        return done

    def due_order(self, clock: Clock, row: Row) -> tuple[int, str]:
        return clocks.due_at(self.rules, clock.due, row.record) or 0, self.rules.key(row.record)

    def is_due(self, clock: Clock, row: Row) -> bool:
        now, lease, state = self.now(), self.rules.lease, None
        if not clocks.is_in_force(self.rules, clock.due, now, self.opened):
            return False
        if clock.due.holder_in is not None and lease is not None:
            holder, status = self.holder(getattr(row.record, lease.owner))
            state = None if holder is None else getattr(holder, status)
        return clocks.is_due(self.rules, clock, row.record, now, holder_state=state)

    def drive(self, clock: Clock, row: Row) -> bool:
        if row not in self.rows or not self.is_due(clock, row):
            return False
        if clock.change is None:
            if self.held_count(self.rules.key(row.record)):
                return False
            self.drop(row)
            return True
        given = clocks.due_given(clock.due, row.record)
        if isinstance(clock.change, Update):
            made = edges.after_update(self.rules, clock.change, row.record, given, self.now())
            self.put(row, made, (), clock.due.by)
        else:
            taken = edges.take_edge(self.rules, clock.change, row.record, given, self.now(), self.world)
            self.put(row, *taken, clock.due.by)
        return True

    # Reading.

    def listing(self, states: Sequence[int], *, newest_first: bool) -> list[Any]:
        self.forget()
        rules, name = self.rules, self.lifecycle.listed_by
        found = [row.record for row in self.rows if not states or rules.state(row.record) in states]
        found.sort(key=rules.key)
        if name is not None:
            found.sort(key=lambda each: rules.moment_at(each, name) or 0, reverse=newest_first)
        return found
