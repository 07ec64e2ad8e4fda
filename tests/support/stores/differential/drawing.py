"""Lifecycles and sequences of operations, drawn by a seed; the oracle says which of them mean something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from msgspec.structs import replace

from runtime.model.lifecycles import Lifecycle
from runtime.stores.contract import DELETION, LeaseProof, LeaseSettlement
from runtime.stores.semantics import clocks, edges, leases
from runtime.stores.semantics.rules import Rules, prepare_rules
from tests.runtime.hand_world import HandWorld
from tests.support.stores.differential import operations as ops
from tests.support.stores.differential.operations import Operation, Oracles, ask_oracle
from tests.support.stores.lifecycles import ALL, COURIER
from tests.support.stores.oracle import Oracle
from tests.support.stores.random_lifecycles import ACTORS, AnyRecord, draw_lifecycle
from tests.support.stores.random_lifecycles import VARIABLES as DRAWN_VARIABLES
from tests.support.stores.records import VARIABLES as FIXED_VARIABLES
from tests.support.stores.records import CourierRecord, Policy

VARIABLES: Mapping[str, Any] = DRAWN_VARIABLES | FIXED_VARIABLES
OWNERS = ("ann", "bob", "eve")
KEYS = "abcdefgh"
TICKETS = "tu"
STRANGERS = ("admin", "keeper", "promoter", "sweeper", "scheduler")
LENGTHS = (4, 6, 8, 16)
"""Numbers of operations of a sequence, beside the pauses between them and what is asked at its end."""
_PAUSES_MS = (1, 500, 1500, 2000, 6000, 11_000, 30_000, -700)
_COURIER_RULES = prepare_rules(COURIER, CourierRecord, VARIABLES)
_UPDATED = ("mode", "remark", "rank", "reason", "kind")
_APART_MS = 10_000_000
"""Sequences of one lifecycle begin so long after each other: no store sees its time begin anew."""


class Setting(NamedTuple):
    """What many sequences share: a lifecycle, and a bound of terminal entities, which is 0 for none."""

    lifecycle: Lifecycle
    bound: int
    rules: Rules

    @property
    def can_reopen(self) -> bool:
        """Whether nothing is said about the time after a start."""
        return not any(clock.due.grace for clock in self.rules.clocks)

    @property
    def has_couriers(self) -> bool:
        """Whether the entities that hold leases matter."""
        lease = self.lifecycle.lease
        dues = (due for each in self.lifecycle.edges.values() for due in each.dues)
        return bool(lease and lease.holder) or any(due.holder_in is not None for due in dues)


class Step(NamedTuple):
    """An operation, and what the oracle answers."""

    operation: Operation
    answer: Any


def draw_setting(seed: int, number: int) -> Setting:
    """Draw a lifecycle; two in ten are those of the contract suite."""
    rng = Random(f"{seed} {number}")
    lifecycle = draw_lifecycle(rng) if rng.random() < 0.8 else rng.choice(ALL[:1] + ALL[2:])
    if lifecycle.lease is not None and lifecycle.lease.holder is None and rng.random() < 0.2:
        lifecycle = replace(lifecycle, key_form="[a-h][0-9]+")
    if lifecycle.edges and lifecycle.lease is not None and rng.random() < 0.6:
        first = _find_free_state(lifecycle)
        lifecycle = replace(lifecycle, initial=first, begins=lifecycle.begins - {first})
    if rng.random() < 0.5 and lifecycle.record is AnyRecord:
        lifecycle = _leave_out_reasons(lifecycle)
    assert lifecycle.record is not None
    return Setting(lifecycle, rng.choice([0, 0, 3]), prepare_rules(lifecycle, lifecycle.record, VARIABLES))


def _find_free_state(lifecycle: Lifecycle) -> int:
    """Find the state in which entities can be claimed."""
    edges_of = lifecycle.edges.values()
    return next(each.source for each in edges_of if lifecycle.lease and each.target == lifecycle.lease.state)


def _leave_out_reasons(lifecycle: Lifecycle) -> Lifecycle:
    """Leave out a word that has PostgreSQL take each edge by a step, and none by a statement."""
    edges_of = {ends: replace(each, reason=None) for ends, each in lifecycle.edges.items()}
    by_name = tuple(replace(each, reason=None) for each in lifecycle.by_name)
    return replace(lifecycle, edges=edges_of, by_name=by_name)


def make_world(number: int) -> HandWorld:
    """Make the world of a sequence."""
    world = HandWorld()
    world.wall_ms += number * _APART_MS
    return world


def make_oracles(setting: Setting, number: int, *, by_creation: bool) -> Oracles:
    """Make the oracles of a sequence."""
    world, others = make_world(number), dict[str, Oracle]()
    given = world, VARIABLES, others, setting.bound
    main = Oracle(setting.lifecycle, *given, by_creation=by_creation, rules=setting.rules)
    return Oracles(world, main, Oracle(COURIER, *given, rules=_COURIER_RULES))


def draw_steps(seed: int, number: int, sequence: int, setting: Setting, *, by_creation: bool) -> list[Step]:
    """Draw a sequence, with the answers of the oracle."""
    rng = Random(f"{seed} {number} {sequence}")
    oracles = make_oracles(setting, sequence, by_creation=by_creation)
    drawer = _Drawer(rng, sequence, setting, oracles)
    return [Step(each, ask_oracle(each, oracles)) for each in drawer.draw()]


def answer_steps(
    operations: Sequence[Operation], number: int, setting: Setting, *, by_creation: bool
) -> list[Step]:
    """Let the oracle answer operations that were drawn before, or some of them."""
    oracles = make_oracles(setting, number, by_creation=by_creation)
    return [Step(each, ask_oracle(each, oracles)) for each in operations]


class _Drawer:
    """Draws one operation after the other; each sees what the ones before have done to the oracle."""

    def __init__(self, rng: Random, sequence: int, setting: Setting, oracles: Oracles) -> None:
        self.rng, self.setting, self.oracles = rng, setting, oracles
        # What an engine has cached of the sequence before is of no use for this one.
        self.keys, self.owners, self.tickets = (
            [f"{name}{sequence}" for name in names] for names in (KEYS, OWNERS, TICKETS)
        )
        self.lifecycle, self.oracle = setting.lifecycle, oracles.main
        self.rules = self.oracle.rules
        self.fields = [each for each in _UPDATED if each in self.rules.names]
        self.drawn, self.weights = zip(*self._list_operations(), strict=True)

    def draw(self) -> Iterator[Operation]:
        last: Operation | None = None
        if self.setting.has_couriers and self.rng.random() < 0.7:
            yield self.create_courier(self.rng.choice(self.owners))
        for number in range(self.rng.choice(LENGTHS)):
            if number and self.rng.random() < 0.3:
                yield self.wait()
            draw = self.drawn[0] if not number else self.rng.choices(self.drawn, self.weights)[0]
            # Whoever has lost an answer asks again.
            again = last is not None and self.rng.random() < 0.03
            last = last if again and last else draw(self)
            yield last
        yield self.wait()
        if self.rules.clocks:
            yield self.run_due()
        yield ops.Inspect()

    def _list_operations(self) -> Iterator[tuple[Callable[[_Drawer], Operation], int]]:
        """List what can be asked of this lifecycle, and how often it is."""
        lease, clocks = self.rules.lease is not None, bool(self.rules.clocks)
        yield _Drawer.create, 6
        if self.rules.changes:
            yield _Drawer.take_edge, 8
        yield _Drawer.claim, 7 if lease else 1
        yield _Drawer.backlog, 1
        if lease:
            yield _Drawer.settle, 6
            yield _Drawer.renew, 2
        if clocks:
            yield _Drawer.run_due, 6
        yield _Drawer.get, 1
        yield _Drawer.find, 1
        yield _Drawer.delete, 2 if self.lifecycle.deletable else 1
        if self.lifecycle.deletable:
            yield _Drawer.purge, 1
        if self.fields:
            yield _Drawer.update, 1
        if self.rules.rank_field is not None:
            yield _Drawer.pause, 1
        if self.setting.has_couriers:
            yield _Drawer.tend_couriers, 5
        if self.setting.can_reopen:
            yield _Drawer.reopen, 1

    # What operations are about.

    def key(self) -> str:
        """Draw a key: most often one that there is."""
        if self.oracle.rows and self.rng.random() < 0.9:
            return str(self.rules.key(self.rng.choice(self.oracle.rows).record))
        return self.rng.choice(self.keys)

    def caller(self, likely: Sequence[str]) -> str:
        """Draw a caller: most often one who may."""
        if likely and self.rng.random() < 0.85:
            return self.rng.choice(likely)
        return self.rng.choice((*ACTORS, *STRANGERS))

    def held(self) -> list[str]:
        """The keys of those that are leased."""
        lease, rules = self.rules.lease, self.rules
        if lease is None:
            return []
        return [
            str(rules.key(row.record)) for row in self.oracle.rows if rules.state(row.record) == lease.state
        ]

    def proof(self, key: str) -> LeaseProof:
        """Draw the proof of a lease: most often the right one."""
        row, lease = self.oracle.row(key), self.lifecycle.lease
        if row is None or lease is None or self.rng.random() < 0.15:
            return LeaseProof(self.rng.choice(self.owners), self.rng.randint(1, 2))
        return LeaseProof(getattr(row.record, lease.owner) or "", getattr(row.record, lease.fence))

    def given(self) -> dict[str, Any]:
        rng = self.rng
        given = {"text": rng.choice(["", "hello"]), "number": "7", "flag": "true", "error": "broken"}
        return {name: given[name] for name in rng.sample(sorted(given), rng.randint(0, 4))}

    def record(self) -> Any:
        rng, kind = self.rng, self.lifecycle.record
        assert kind is not None
        wished = {
            "state": rng.choice([0, 0, *self.lifecycle.states]),
            "ticket": rng.choice([None, "", *self.tickets]),
            "rank": rng.randint(1, 3),
            "urgency": rng.randint(1, 2),
            "mode": rng.randint(0, 1),
            "is_set": rng.random() < 0.7,
            "wanted": rng.random() < 0.5,
            "kind": rng.choice(["", "x", "y"]),
            "needs": tuple(rng.sample(["lift", "drive"], rng.randint(0, 2))),
            "limit": rng.randint(0, 2),
            "policy": Policy(jitter=rng.choice([0.0, 0.5])),
        }
        names = kind.__struct_fields__
        told = {name: value for name, value in wished.items() if name in names}
        free = [key for key in self.keys if self.oracle.row(key) is None]
        key = rng.choice(free if free and rng.random() < 0.9 else self.keys)
        return kind(**{self.lifecycle.key: key}, **told)

    def wait(self) -> Operation:
        """Draw a pause: half of them end when something becomes due, free or expired, or just after that."""
        ahead = self.moments_ahead() if self.rng.random() < 0.5 else []
        if not ahead:
            return ops.Wait(self.rng.choice(_PAUSES_MS))
        until = self.rng.choice(ahead[:4])
        return ops.Wait((until - self.oracle.now()) // 1000 + self.rng.choice([0, 1]))

    def moments_ahead(self) -> list[int]:
        """The moments at which something changes by itself, the next one first."""
        rules, found = self.rules, set[int | None]()
        for row in self.oracle.rows:
            for clock in rules.clocks:
                if clock.due.at is not None:
                    found.add(clocks.due_at(rules, clock.due, row.record))
            if rules.lease is not None:
                found.add(leases.free_at(rules, row.record))
                if rules.lease.expires:
                    found.add(rules.moment_at(row.record, rules.lease.expires))
        return sorted(each for each in found if each is not None and each > self.oracle.now())

    # Operations.

    def create(self) -> Operation:
        records = tuple(self.record() for _ in range(self.rng.choice([1, 2, 2, 3])))
        first = [each.name for each in self.rules.edges.values() if each.source == self.lifecycle.initial]
        then = self.rng.sample(first or sorted(self.rules.edges), int(self.rng.random() < 0.15))
        caller = self.caller(["client"]) if self.oracle.rows else "client"
        return ops.Create(records, caller, tuple(then))

    def take_edge(self) -> Operation:
        """Draw a change of an entity: most often one that applies."""
        key = self.key()
        row = self.oracle.row(key)
        applying = [
            name
            for name, change in self.rules.changes.items()
            if row is not None and edges.applies(self.rules, change, row.record)
        ]
        is_apt = applying and self.rng.random() < 0.8
        name = self.rng.choice(applying if is_apt else sorted(self.rules.changes))
        caller = self.caller(sorted(self.rules.changes[name].actors))
        proof = self.proof(key) if self.rng.random() < 0.7 else None
        return ops.TakeEdge(name, key, caller, proof, self.given())

    def settle(self) -> Operation:
        lease, held = self.rules.lease, self.held()
        leaving = [each.name for each in self.rules.edges.values() if lease and each.source == lease.state]
        if not held and self.rng.random() < 0.8:
            return self.claim()
        is_apt = held and self.rng.random() < 0.9
        key = self.rng.choice(held) if is_apt else self.rng.choice(self.keys)
        name = self.rng.choice(leaving if leaving and self.rng.random() < 0.9 else sorted(self.rules.edges))
        caller = self.caller(sorted(self.rules.edges[name].actors))
        is_final = self.rules.edges[name].dead_letter is not None and self.rng.random() < 0.2
        asked = LeaseSettlement(
            key, self.proof(key), name, self.given(), is_final or self.rng.random() < 0.02
        )
        return ops.Settle(asked, caller)

    def claim(self) -> Operation:
        rng, entering = self.rng, self.rules.entering
        caller = self.caller(sorted(entering.actors) if entering else ())
        names = self.lifecycle.record.__struct_fields__ if self.lifecycle.record else ()
        where = {"mode": 1} if rng.random() < 0.2 and "mode" in names else {}
        able = rng.choice([None, None, ("lift",), ("lift", "drive", "x")])
        present = [str(row.record.name) for row in self.oracles.couriers.rows]
        owner = rng.choice(present if present and rng.random() < 0.8 else self.owners)
        return ops.Claim(owner, rng.choice([0, 1, 1, 1, 2, 2, 3]), caller, where, able)

    def backlog(self) -> Operation:
        return ops.Backlog()

    def renew(self) -> Operation:
        held = self.held()
        key = self.rng.choice(held) if held and self.rng.random() < 0.8 else self.key()
        return ops.Renew(key, self.proof(key))

    def run_due(self) -> Operation:
        rows, known = self.oracle.rows, self.rules.clocks
        due = [clock for clock in known if any(self.oracle.is_due(clock, row) for row in rows)]
        clock = self.rng.choice(due if due and self.rng.random() < 0.8 else known)
        name = clock.change.name if clock.change else DELETION
        return ops.RunDue(name, self.caller([clock.due.by]))

    def get(self) -> Operation:
        return ops.Get(self.key())

    def find(self) -> Operation:
        states = self.rng.sample(sorted(self.lifecycle.states), self.rng.randint(0, 2))
        return ops.Find(tuple(states), self.rng.random() < 0.5, self.rng.randint(0, 3))

    def delete(self) -> Operation:
        key, expected = self.key(), self.rng.choice(sorted(self.lifecycle.states))
        row = self.oracle.row(key)
        if row is not None and self.rng.random() < 0.7:
            expected = self.rules.state(row.record)
        return ops.Delete(key, expected, self.caller(sorted(self.lifecycle.deleters)))

    def purge(self) -> Operation:
        return ops.Purge(5.0, self.caller(sorted(self.lifecycle.deleters)))

    def update(self) -> Operation:
        name = self.rng.choice(self.fields)
        changes = {name: self.rng.randint(0, 1) if name in ("mode", "rank") else "x"}
        return ops.UpdateFields(self.key(), changes)

    def pause(self) -> Operation:
        if self.oracle.paused and self.rng.random() < 0.5:
            return ops.Resume(self.rng.choice(sorted(self.oracle.paused)))
        return ops.Pause(self.rng.randint(1, 3))

    def tend_couriers(self) -> Operation:
        """Let a holder come, be lost, or leave."""
        name, way = self.rng.choice(self.owners), self.rng.random()
        if way < 0.4 or self.oracles.couriers.row(name) is None:
            return self.create_courier(name)
        return ops.LoseCourier(name) if way < 0.7 else ops.DismissCourier(name)

    def create_courier(self, name: str) -> Operation:
        skills = tuple(self.rng.sample(["lift", "drive"], self.rng.choice([0, 1, 2, 2])))
        return ops.CreateCourier(CourierRecord(name=name, room=self.rng.randint(1, 3), skills=skills))

    def reopen(self) -> Operation:
        return ops.Reopen()
