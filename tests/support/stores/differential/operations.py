"""Operations of a drawn sequence: each can be asked of the stores of an engine and of the oracle."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from runtime.call import Call
from runtime.call.conditions import Condition
from runtime.stores.contract import CreateResult, EntityStore, LeaseProof, LeaseSettlement
from runtime.stores.store import GuardBreach, NoSuchEntity
from tests.runtime.hand_world import HandWorld, Lines, make_call
from tests.support.stores.oracle import Oracle, Refusal

_LINES = Lines()
PAGE = 2
"""The size of the first page of a listing; the second has what is left."""


class Stores(NamedTuple):
    """The stores of an engine, and their world."""

    world: HandWorld
    main: EntityStore[Any]
    couriers: EntityStore[Any]

    def call(self, caller: str) -> Call:
        return make_call(self.world, caller=caller, level="ERROR", lines=_LINES)


class Oracles(NamedTuple):
    """The oracles of the same entities, and their world."""

    world: HandWorld
    main: Oracle
    couriers: Oracle


class Operation(Protocol):
    """Something that is asked of both."""

    async def ask(self, stores: Stores) -> Any:
        """Ask an engine."""
        ...

    def tell(self, oracles: Oracles) -> Any:
        """Ask the oracle."""
        ...


class Create(NamedTuple):
    records: tuple[Any, ...]
    caller: str
    then: tuple[str, ...]

    async def ask(self, stores: Stores) -> Any:
        return await stores.main.create_many([*self.records], stores.call(self.caller), then=[*self.then])

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.create_many(self.records, self.caller, self.then)


class TakeEdge(NamedTuple):
    name: str
    key: str
    caller: str
    proof: LeaseProof | None
    given: Mapping[str, Any]

    async def ask(self, stores: Stores) -> Any:
        call = stores.call(self.caller)
        return await stores.main.transition(self.key, self.name, call, lease=self.proof, given=self.given)

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.transition(self.key, self.name, self.caller, self.proof, self.given)


class Settle(NamedTuple):
    settlement: LeaseSettlement
    caller: str

    async def ask(self, stores: Stores) -> Any:
        return await stores.main.settle(self.settlement, stores.call(self.caller))

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.settle(self.settlement, self.caller)


class Claim(NamedTuple):
    owner: str
    most: int
    caller: str
    where: Mapping[str, Any]
    capabilities: tuple[str, ...] | None

    async def ask(self, stores: Stores) -> Any:
        call, able = stores.call(self.caller), self.capabilities
        return await stores.main.claim(self.owner, self.most, call, where=self.where, capabilities=able)

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.claim(self.owner, self.most, self.caller, self.where, self.capabilities)


class Renew(NamedTuple):
    key: str
    proof: LeaseProof

    async def ask(self, stores: Stores) -> Any:
        return await stores.main.renew([(self.key, self.proof)])

    def tell(self, oracles: Oracles) -> Any:
        return [oracles.main.renew(self.key, self.proof)]


class RunDue(NamedTuple):
    name: str
    caller: str

    async def ask(self, stores: Stores) -> Any:
        return await stores.main.run_due(self.name, stores.call(self.caller))

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.run_due(self.name, self.caller)


class Get(NamedTuple):
    key: str

    async def ask(self, stores: Stores) -> Any:
        return await stores.main.get(self.key)

    def tell(self, oracles: Oracles) -> Any:
        row = oracles.main.touch(self.key)
        return None if row is None else row.record


class Find(NamedTuple):
    """A short page, and all that is behind it."""

    states: tuple[int, ...]
    newest_first: bool
    offset: int

    async def ask(self, stores: Stores) -> Any:
        store, states, newest_first = stores.main, self.states, self.newest_first
        page = await store.find(states=states, newest_first=newest_first, offset=self.offset, size=PAGE)
        if page.next is None:
            return [*page.records], None
        rest = await store.find(states=states, newest_first=newest_first, after=page.next)
        return [*page.records], [*rest.records]

    def tell(self, oracles: Oracles) -> Any:
        found = oracles.main.listing(self.states, newest_first=self.newest_first)[self.offset :]
        return found[:PAGE], found[PAGE:] or None


class Backlog(NamedTuple):
    async def ask(self, stores: Stores) -> Any:
        return await stores.main.backlog()

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.backlog()


class Delete(NamedTuple):
    key: str
    expected: int
    caller: str

    async def ask(self, stores: Stores) -> Any:
        return await stores.main.delete(self.key, self.expected, stores.call(self.caller))

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.delete(self.key, self.expected, self.caller)


class Purge(NamedTuple):
    older_than_s: float
    caller: str

    async def ask(self, stores: Stores) -> Any:
        return await stores.main.purge(self.older_than_s, stores.call(self.caller))

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.purge(self.older_than_s, self.caller)


class UpdateFields(NamedTuple):
    key: str
    changes: Mapping[str, Any]

    async def ask(self, stores: Stores) -> Any:
        return await stores.main.update(self.key, **self.changes)

    def tell(self, oracles: Oracles) -> Any:
        return oracles.main.update(self.key, self.changes)


class Pause(NamedTuple):
    value: int

    async def ask(self, stores: Stores) -> Any:
        await stores.main.pause(self.value)

    def tell(self, oracles: Oracles) -> Any:
        oracles.main.paused |= {self.value}


class Resume(NamedTuple):
    value: int

    async def ask(self, stores: Stores) -> Any:
        await stores.main.resume(self.value)

    def tell(self, oracles: Oracles) -> Any:
        oracles.main.paused -= {self.value}


class CreateCourier(NamedTuple):
    """A holder comes."""

    record: Any

    async def ask(self, stores: Stores) -> Any:
        return await stores.couriers.create_many([self.record], stores.call("client"))

    def tell(self, oracles: Oracles) -> Any:
        return oracles.couriers.create_many([self.record], "client")


class LoseCourier(NamedTuple):
    name: str

    async def ask(self, stores: Stores) -> Any:
        return await stores.couriers.transition(self.name, "lose", stores.call("reaper"))

    def tell(self, oracles: Oracles) -> Any:
        return oracles.couriers.transition(self.name, "lose", "reaper", None, {})


class DismissCourier(NamedTuple):
    name: str

    async def ask(self, stores: Stores) -> Any:
        return await stores.couriers.delete(self.name, 1, stores.call("client"))

    def tell(self, oracles: Oracles) -> Any:
        return oracles.couriers.delete(self.name, 1, "client")


class Wait(NamedTuple):
    """Time passes, or a clock steps back."""

    milliseconds: int

    async def ask(self, stores: Stores) -> Any:
        stores.world.wall_ms += self.milliseconds

    def tell(self, oracles: Oracles) -> Any:
        oracles.world.wall_ms += self.milliseconds


class Reopen(NamedTuple):
    """The process dies and another one opens the stores: what is not kept must not matter."""

    async def ask(self, stores: Stores) -> Any:
        """Whoever holds the stores opens others, before this is asked."""

    def tell(self, oracles: Oracles) -> Any:
        return None


class Inspect(NamedTuple):
    """All records in the order of a listing, the history of each, and how many are in each state."""

    async def ask(self, stores: Stores) -> Any:
        store = stores.main
        records = (await store.find(size=1000, newest_first=True)).records
        histories = [await store.history(each.key) for each in records]
        taken = [
            [(entry.edge, entry.actor, entry.source, entry.target) for entry in each] for each in histories
        ]
        counts = await store.count()
        return [*records], taken, {state: count for state, count in counts.items() if count}

    def tell(self, oracles: Oracles) -> Any:
        main = oracles.main
        records = main.listing((), newest_first=True)
        rows = {main.rules.key(row.record): row for row in main.rows}
        taken = [[*rows[main.rules.key(each)].history] for each in records]
        counts: dict[int, int] = {}
        for each in records:
            counts[main.rules.state(each)] = counts.get(main.rules.state(each), 0) + 1
        return records, taken, counts


class Tokens:
    """The tokens of an engine by those of the oracle: which of many is drawn first is not said."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._known: dict[str, str] = {}

    def rename(self, answer: Any, wanted: Any) -> Any:
        """Return an answer with the tokens of the oracle, wherever each stands for the same one."""
        if isinstance(answer, Struct) and isinstance(wanted, type(answer)):
            own, other = getattr(answer, self._field, None), getattr(wanted, self._field, None)
            if own is None or other is None:
                return answer
            if own not in self._known and other not in self._known.values():
                self._known[own] = other
            return replace(answer, **{self._field: self._known.get(own, own)})
        if isinstance(answer, (list, tuple)) and isinstance(wanted, (list, tuple)):
            pairs = zip_longest(answer, wanted[: len(answer)])
            return type(answer)([self.rename(*pair) for pair in pairs])
        return answer


async def ask_engine(operation: Operation, stores: Stores) -> Any:
    """Return what an engine answers or refuses, in the form of the oracle."""
    try:
        answer = await operation.ask(stores)
    except Condition as condition:
        return condition.code
    except (GuardBreach, NoSuchEntity) as error:
        return type(error).__name__
    except Exception as error:
        # A fault is a difference as any other, and found again in fewer operations.
        return "".join(traceback.format_exception(error))
    if isinstance(answer, list):  # Not every engine tells the position of a new entity.
        return [each[:3] if isinstance(each, CreateResult) else each for each in answer]
    return [*answer] if isinstance(answer, tuple) else answer


def ask_oracle(operation: Operation, oracles: Oracles) -> Any:
    """Return what the oracle answers or refuses."""
    try:
        answer = operation.tell(oracles)
    except Refusal as refusal:
        return str(refusal)
    return [*answer] if isinstance(answer, (list, tuple)) else answer


def describe(value: Any) -> str:
    """Write a value nearly as Python would, but only the fields of a record that are not as usual."""
    if isinstance(value, Struct):
        names, defaults = value.__struct_fields__, value.__struct_defaults__
        usual = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        fields = {name: getattr(value, name) for name in names}
        told = {name: each for name, each in fields.items() if each or isinstance(each, (int, float))}
        shown = [f"{name}={describe(each)}" for name, each in told.items() if usual.get(name, value) != each]
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{type(value).__name__}({', '.join(map(describe, value))})"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(describe, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(describe, value))) + "}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{describe(key)}: {describe(each)}" for key, each in value.items()) + "}"
    return value.isoformat() if isinstance(value, datetime) else repr(value)
