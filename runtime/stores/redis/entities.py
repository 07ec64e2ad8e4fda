"""What all parts of the store need: scripts, keys and settings of an entity, how it tells and fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Generic, TypeVar

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.model.lifecycles import Index, Lifecycle, Shift, Transition
from runtime.model.system import System
from runtime.observe import log as events
from runtime.observe.metrics import Metrics
from runtime.stores.batch import Run
from runtime.stores.redis.connection.server import Full, Server, Unavailable
from runtime.stores.redis.metrics.measures import Measures
from runtime.stores.redis.rows import Rows, refused
from runtime.stores.redis.scripts import Given, ScriptCall, scripts
from runtime.stores.store import Record

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Known = Callable[[int], Mapping[str, object]]
"""What is known of one of several entities, by its place among them; what is unset is not there."""


class Entities(Generic[Record]):
    """The entities of one kind."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        server: Server,
        metrics: Metrics,
        values: Mapping[str, Any],
    ) -> None:
        if lifecycle.in_redis is None:
            raise ValueError(f"{lifecycle.entity} is not kept in Redis")
        self.system = system
        self.roles = system.roles
        self.lifecycle = lifecycle
        self.kept = lifecycle.in_redis
        self.server = server
        self.rows = Rows(self.kept, record)
        self.metrics = metrics
        self.measures = Measures(metrics, lifecycle.entity)
        self.variables = values
        self.prefix = str(values.get(self.kept.prefix or "") or "")
        self.scripts = scripts(system.name, lifecycle.entity, lifecycle.key, self.prefix)
        self.state_words = self.kept.words[lifecycle.status]
        self.state_numbers = self.rows.numbers[lifecycle.status]
        self.hash_head, _, self.hash_tail = (self.prefix + self.kept.hash).partition(f"{{{lifecycle.key}}}")

    def key(self, pattern: str, **places: str) -> str:
        """A key under the prefix of the store."""
        for name, value in places.items():
            pattern = pattern.replace(f"{{{name}}}", value)
        return self.prefix + pattern

    def hash(self, key: str) -> str:
        """The key of the hash of an entity."""
        return f"{self.hash_head}{key}{self.hash_tail}"

    def index_keys(self, index: Index) -> dict[int | None, str]:
        """The keys of an index by the value of the enum in it; one without an enum is under None."""
        field = self.enum_in(index)
        if field is None:
            return {None: self.key(index.key)}
        words = self.kept.words[field]
        return {number: self.key(index.key, **{field: word}) for number, word in words.items() if number}

    def enum_in(self, index: Index) -> str | None:
        """The enum field in the key of an index."""
        return next((name for name in self.kept.words if f"{{{name}}}" in index.key), None)

    def calling(
        self, script: str, once: Given, each: Sequence[Given], parts: Sequence[str] = ()
    ) -> ScriptCall:
        """A call of a script."""
        return self.scripts[script].call(self.variables, once, each, parts)

    async def run(
        self, script: str, once: Given, each: Sequence[Given], *, repeatable: bool = False
    ) -> list[list[Any]]:
        """Runs a script for some entities; what it answers about each."""
        (answers,) = await self.server.evaluate([self.calling(script, once, each)], repeatable=repeatable)
        return list(answers)

    async def read_all(self, keys: Sequence[str]) -> list[Record | None]:
        """The records as they are now."""
        if not keys:
            return []
        rows = await self.server.ask(*(("HGETALL", self.hash(key)) for key in keys))
        return [self.rows.read(row) if row else None for row in rows]

    async def apart(self, run: Run[Item, Outcome], items: Sequence[Item]) -> Sequence[Outcome | Exception]:
        """Does something for all items; one that cannot be written is told so, and no other suffers."""
        try:
            return await run(items)
        except UnicodeEncodeError:
            if len(items) == 1:
                return [refused(self.lifecycle.entity)]
            return [(await self.apart(run, [each]))[0] for each in items]

    async def answer(self, work: Awaitable[Answer]) -> Answer:
        """What came of something; a caller learns no more than that the store is away, or full."""
        try:
            return await work
        except (Unavailable, Full, UnicodeEncodeError) as error:
            raise self.told(error) from None

    def told(self, error: Unavailable | Full | UnicodeEncodeError) -> Exception:
        """What a caller is told of an error."""
        if isinstance(error, Unavailable):
            return self.unavailable()
        return self.full() if isinstance(error, Full) else refused(self.lifecycle.entity)

    def unavailable(self) -> Condition:
        """What a caller is told when the server cannot be reached."""
        return self.condition("store_unavailable")

    def full(self, limit: int = 0) -> Condition:
        """What a caller is told when there is no room for more."""
        return self.condition("store_full", entity=self.lifecycle.entity, limit=limit)

    def lost(self, key: str, holder: str) -> Condition:
        """What whoever has no lease any more is told."""
        self.measures.lease_lost()
        return self.condition("lease_lost", holder=holder, key=key)

    def denied(self, call: Call, problem: str) -> Condition:
        """What an actor is told that the lifecycle does not let."""
        return self.condition("permission_denied", caller=call.caller, method=call.method, problem=problem)

    def condition(self, role: str, **known: object) -> Condition:
        """The condition of a role, with what its message tells of all that is known."""
        make: Callable[..., Condition] = self.roles[role]
        told = signature(make).parameters
        return make(**{name: value for name, value in known.items() if name in told})

    def applied(self, call: Call, edge: Transition, keys: Sequence[str], known: Known) -> None:
        """Counts and tells a transition that a script has made to some entities."""
        self.metrics.count_transition(self.lifecycle.entity, edge.name, call.caller, len(keys))
        self.tell(call, edge.name, edge.source, edge.target, keys, known)

    def shifted(self, call: Call, shift: Shift, key: str, /, **known: object) -> None:
        """Counts and tells a change that left the state as it was."""
        self.metrics.count_transition(self.lifecycle.entity, shift.name, call.caller)
        if shift.due is not None and call.log.wants(events.TRANSITION):
            told: dict[str, object] = {"entity": self.lifecycle.entity, "transition": shift.name}
            for name, value in shift.where.items():
                told["from"] = self.kept.words[name][value]
                if isinstance(after := shift.sets.get(name), int):
                    told["to"] = self.kept.words[name][after]
            told |= {self.lifecycle.key: key, **known}
            call.tell(events.SHIFT, f"{self.lifecycle.entity} {shift.name}", **told)

    def tell(
        self,
        call: Call,
        name: str,
        source: int | None,
        target: int | None,
        keys: Sequence[str],
        known: Known,
    ) -> None:
        """Writes a transition of some to the log. What one carries, or failed with, is not for the log."""
        if keys and call.log.wants(events.TRANSITION):
            states, of_key = self.lifecycle.states, self.lifecycle.key
            shared: dict[str, object] = {
                "request_id": call.request_id,
                "entity": self.lifecycle.entity,
                "transition": name,
                "from_status": None if source is None else states[source],
                "to_status": None if target is None else states[target],
            }
            each = [{of_key: key, **known(place)} for place, key in enumerate(keys)]
            call.tell_all(events.TRANSITION, f"{self.lifecycle.entity} {name}", shared, each)
