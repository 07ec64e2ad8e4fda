"""Random lifecycles, operations, callers and times: every engine answers what the oracle answers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from runtime.call.conditions import Condition
from runtime.model.lifecycles import Lifecycle
from runtime.observe.metrics import Metrics
from runtime.stores.contract import DELETION, CreateResult, LeaseProof, LeaseSettlement
from runtime.stores.store import GuardBreach, NoSuchEntity
from tests.runtime.hand_world import HandWorld, make_call
from tests.support.deep import DEEP
from tests.support.stores.engines import ENGINES, claims_by_creation, close_opened
from tests.support.stores.lifecycles import ALL, COURIER
from tests.support.stores.oracle import Oracle, Refusal
from tests.support.stores.random_lifecycles import ACTORS, VARIABLES, draw_lifecycle
from tests.support.stores.records import VARIABLES as FIXED_VARIABLES
from tests.support.stores.records import CourierRecord, Policy

SEQUENCES = 200_000 if DEEP else 500
SLOWER = {} if DEEP else {"postgres": 16, "redis": 5, "s3": 12, "sqlite": 6}
"""By engine: so many times as long a request takes as in memory, for equal shares of the suite."""
STEPS = 30
OWNERS = ("ann", "bob", "eve")
KEYS = tuple("abcdefgh")
CALLERS = (*ACTORS, "admin", "keeper", "promoter", "sweeper", "scheduler")
PARTS = 10
"""Tests of the same number of sequences each, so that several processes share them."""


class Pair:
    """An engine and the oracle, in two worlds with the same clock and chance."""

    def __init__(self, engine: str, lifecycle: Lifecycle, rng: Random) -> None:
        self.rng, self.lifecycle = rng, lifecycle
        self.worlds = HandWorld(), HandWorld()
        variables = VARIABLES | FIXED_VARIABLES
        bound = rng.choice([0, 0, 3])
        open_store = ENGINES[engine](self.worlds[0], Metrics(), variables, bound)
        self.store, self.couriers = open_store(lifecycle), open_store(COURIER)
        others: dict[str, Oracle] = {}
        self.oracle = Oracle(
            *(lifecycle, self.worlds[1], variables, others, bound),
            by_creation=claims_by_creation(engine, lifecycle, variables),
        )
        self.other = Oracle(COURIER, self.worlds[1], variables, others, bound)
        self.log: list[str] = []

    def call(self, caller: str) -> Any:
        return make_call(self.worlds[0], caller=caller, level="ERROR")

    async def ask(self, what: str, asked: Any, told: Callable[[], Any]) -> None:
        """Ask both, and compare what they answer or refuse."""
        self.log.append(what)
        answers = [await _outcome(asked), _refusal(told)]
        assert answers[0] == answers[1], "\n".join(self.log)

    async def compare(self) -> None:
        """Compare all records in the order of a listing, their history, and how many there are of each."""
        page = await self.store.find(size=1000, newest_first=True)
        assert list(page.records) == self.oracle.listing((), newest_first=True), "\n".join(self.log)
        for row in self.oracle.rows:
            entries = await self.store.history(self.oracle.rules.key(row.record))
            found = [(each.edge, each.actor, each.source, each.target) for each in entries]
            assert found == row.history, "\n".join(self.log)
        counts = await self.store.count()
        assert sum(counts.values()) == len(self.oracle.rows)

    def pass_time(self, milliseconds: int) -> None:
        for world in self.worlds:
            world.wall_ms += milliseconds

    # What is drawn.

    def record(self) -> Any:
        rng, kind = self.rng, self.lifecycle.record
        assert kind is not None
        values: dict[str, Any] = {self.lifecycle.key: rng.choice(KEYS)}
        wished = {
            "state": rng.choice([0, 0, *self.lifecycle.states]),
            "ticket": rng.choice([None, "", "t", "u"]),
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
        return kind(**values, **{name: value for name, value in wished.items() if name in names})

    def key(self) -> str:
        return self.rng.choice(KEYS)

    def proof(self, key: str) -> LeaseProof:
        """Most often the right one."""
        row, lease = self.oracle.row(key), self.lifecycle.lease
        if row is None or lease is None or self.rng.random() < 0.15:
            return LeaseProof(self.rng.choice(OWNERS), self.rng.randint(1, 2))
        return LeaseProof(getattr(row.record, lease.owner) or "", getattr(row.record, lease.fence))

    def given(self) -> dict[str, Any]:
        rng = self.rng
        given = {"text": rng.choice(["", "hello"]), "number": "7", "flag": "true", "error": "broken"}
        return {name: given[name] for name in rng.sample(sorted(given), rng.randint(0, 4))}

    def caller(self, *likely: str) -> str:
        return self.rng.choice([*likely] * 4 + [*CALLERS])

    # Operations.

    async def create(self) -> None:
        records, caller = [self.record() for _ in range(self.rng.randint(1, 3))], self.caller("client")
        then = self.rng.sample(sorted(self.oracle.rules.edges), int(self.rng.random() < 0.2))
        await self.ask(
            f"create {records} by {caller}, then {then}",
            self.store.create_many(records, self.call(caller), then=then),
            lambda: self.oracle.create_many(records, caller, then),
        )

    async def take_edge(self) -> None:
        changes = self.oracle.rules.changes
        if not changes:
            return
        key, name = self.key(), self.rng.choice(sorted(changes))
        caller, given = self.caller(*sorted(changes[name].actors)), self.given()
        proof = self.proof(key) if self.rng.random() < 0.7 else None
        await self.ask(
            f"{name} {key} by {caller} with {proof} {given}",
            self.store.transition(key, name, self.call(caller), lease=proof, given=given),
            lambda: self.oracle.transition(key, name, caller, proof, given),
        )

    async def settle(self) -> None:
        edges = self.oracle.rules.edges
        if not edges:
            return
        key, name = self.key(), self.rng.choice(sorted(edges))
        caller = self.caller(*sorted(edges[name].actors))
        asked = LeaseSettlement(key, self.proof(key), name, self.given(), self.rng.random() < 0.2)
        await self.ask(
            f"settle {asked} by {caller}",
            self.store.settle(asked, self.call(caller)),
            lambda: self.oracle.settle(asked, caller),
        )

    async def claim(self) -> None:
        rng, entering = self.rng, self.oracle.rules.entering
        owner, count = rng.choice(OWNERS), rng.randint(0, 3)
        caller = self.caller(*(sorted(entering.actors) if entering else ()))
        names = self.lifecycle.record.__struct_fields__ if self.lifecycle.record else ()
        where = {"mode": 1} if rng.random() < 0.2 and "mode" in names else {}
        able = rng.choice([None, None, ("lift",), ("lift", "drive", "x")])
        await self.ask(
            f"claim {count} for {owner} by {caller} where {where} able {able}",
            self.store.claim(owner, count, self.call(caller), where=where, capabilities=able),
            lambda: self.oracle.claim(owner, count, caller, where, able),
        )

    async def backlog(self) -> None:
        await self.ask("backlog", self.store.backlog(), self.oracle.backlog)

    async def renew(self) -> None:
        key = self.key()
        proof = self.proof(key)
        await self.ask(
            f"renew {key} {proof}",
            self.store.renew([(key, proof)]),
            lambda: [self.oracle.renew(key, proof)],
        )

    async def run_due(self) -> None:
        clocks = self.oracle.rules.clocks
        if not clocks:
            return
        clock = self.rng.choice(clocks)
        name = clock.change.name if clock.change else DELETION
        caller = self.caller(clock.due.by)
        await self.ask(
            f"run {name} by {caller}",
            self.store.run_due(name, self.call(caller)),
            lambda: self.oracle.run_due(name, caller),
        )

    async def read(self) -> None:
        key = self.key()
        await self.ask(f"get {key}", self.store.get(key), lambda: self._record(key))
        states = self.rng.sample(sorted(self.lifecycle.states), self.rng.randint(0, 2))
        newest_first, offset = self.rng.random() < 0.5, self.rng.randint(0, 3)
        page = await self.store.find(states=states, newest_first=newest_first, offset=offset, size=2)
        wanted = self.oracle.listing(states, newest_first=newest_first)
        assert list(page.records) == wanted[offset : offset + 2]
        assert (page.next is not None) == (len(wanted) > offset + 2)
        if page.next is not None:
            rest = await self.store.find(states=states, newest_first=newest_first, after=page.next)
            assert list(rest.records) == wanted[offset + 2 :]

    def _record(self, key: str) -> Any:
        row = self.oracle.touch(key)
        return None if row is None else row.record

    async def remove(self) -> None:
        key, caller = self.key(), self.caller(*sorted(self.lifecycle.deleters))
        expected = self.rng.choice(sorted(self.lifecycle.states))
        await self.ask(
            f"delete {key} in {expected} by {caller}",
            self.store.delete(key, expected, self.call(caller)),
            lambda: self.oracle.delete(key, expected, caller),
        )
        if self.rng.random() < 0.2:
            await self.ask(
                f"purge by {caller}",
                self.store.purge(5.0, self.call(caller)),
                lambda: self.oracle.purge(5.0, caller),
            )

    async def update(self) -> None:
        key, name = self.key(), self.rng.choice(["mode", "remark", "rank", "reason", "kind"])
        if name not in self.oracle.rules.names:
            return
        changes = {name: self.rng.randint(0, 1) if name in ("mode", "rank") else "x"}
        await self.ask(
            f"update {key} {changes}",
            self.store.update(key, **changes),
            lambda: self.oracle.update(key, changes),
        )

    async def pause(self) -> None:
        if self.oracle.rules.rank_field is None:
            return
        value = self.rng.randint(1, 3)
        self.log.append(f"pause or resume {value}")
        if self.rng.random() < 0.5:
            await self.store.pause(value)
            self.oracle.paused |= {value}
        else:
            await self.store.resume(value)
            self.oracle.paused -= {value}

    async def tend_couriers(self) -> None:
        """Let a holder come, be lost, or leave."""
        name, way = self.rng.choice(OWNERS), self.rng.random()
        if way < 0.6:
            skills = tuple(self.rng.sample(["lift", "drive"], self.rng.randint(0, 2)))
            records = [CourierRecord(name=name, room=self.rng.randint(1, 3), skills=skills)]
            await self.ask(
                f"courier {records}",
                self.couriers.create_many(records, self.call("client")),
                lambda: self.other.create_many(records, "client"),
            )
        elif way < 0.8:
            await self.ask(
                f"lose {name}",
                self.couriers.transition(name, "lose", self.call("reaper")),
                lambda: self.other.transition(name, "lose", "reaper", None, {}),
            )
        else:
            await self.ask(
                f"dismiss {name}",
                self.couriers.delete(name, 1, self.call("client")),
                lambda: self.other.delete(name, 1, "client"),
            )

    async def wait(self) -> None:
        """Let time pass; now and then the clock steps back."""
        milliseconds = self.rng.choice([1, 500, 1500, 2000, 6000, 11_000, 30_000, -700])
        self.log.append(f"{milliseconds} ms")
        self.pass_time(milliseconds)


OPERATIONS: tuple[tuple[Callable[[Pair], Any], int], ...] = (
    (Pair.create, 6),
    (Pair.take_edge, 6),
    (Pair.claim, 6),
    (Pair.settle, 5),
    (Pair.wait, 5),
    (Pair.run_due, 5),
    (Pair.tend_couriers, 3),
    (Pair.renew, 2),
    (Pair.read, 2),
    (Pair.remove, 2),
    (Pair.update, 1),
    (Pair.pause, 1),
    (Pair.backlog, 1),
)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("engine", sorted(ENGINES))
async def test_every_engine_answers_as_the_oracle(engine: str, part: int) -> None:
    """Whatever is asked in whatever order, answers, records and histories are those of the semantics."""
    for number in range(SEQUENCES // SLOWER.get(engine, 1) // PARTS):
        rng = Random(f"{part} {number}")
        lifecycle = draw_lifecycle(rng) if rng.random() < 0.7 else rng.choice(ALL[:1] + ALL[2:])
        if lifecycle.lease is not None and lifecycle.lease.holder is None and rng.random() < 0.2:
            lifecycle = replace(lifecycle, key_form="[a-h]")
        pair = Pair(engine, lifecycle, rng)
        steps, weights = zip(*OPERATIONS, strict=True)
        pair.log.append(f"part {part}, number {number}: {lifecycle}")
        for step in rng.choices(steps, weights, k=STEPS):
            await step(pair)
        await pair.compare()
        await close_opened()


async def _outcome(asked: Any) -> Any:
    try:
        answer = await asked
    except Condition as condition:
        return condition.code
    except (GuardBreach, NoSuchEntity) as error:
        return type(error).__name__
    if isinstance(answer, list):  # Not every engine tells the position of a new entity.
        return [each[:3] if isinstance(each, CreateResult) else each for each in answer]
    return [*answer] if isinstance(answer, tuple) else answer


def _refusal(told: Callable[[], Any]) -> Any:
    try:
        answer = told()
    except Refusal as refusal:
        return str(refusal)
    return [*answer] if isinstance(answer, (list, tuple)) else answer
