"""Calls of the script of an entity: arguments, failures of the server, and the audit of what was done."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle, Transition, Update
from runtime.model.system import System
from runtime.observe import log as events
from runtime.observe.metrics import Metrics
from runtime.stores.base import StoreBase
from runtime.stores.contract import NOTHING, HistoryEntry, Record
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.redis.codec import HashCodec, NewRecords, decode_json
from runtime.stores.redis.connection.client import Full, RedisClient, RedisUnavailable, ScriptCall
from runtime.stores.redis.layout import KeyLayout, words_of
from runtime.stores.redis.lua_table import LuaTable
from runtime.stores.redis.metrics.measures import RedisMeasures
from runtime.stores.redis.scripts import Scripts
from runtime.stores.semantics.clocks import is_in_force
from runtime.stores.semantics.rules import Change
from runtime.stores.store import Unstorable
from runtime.world import World

Answer = TypeVar("Answer")
FORGOTTEN = ".forgotten"
"""Stands for a change where an index had a key whose entity is gone."""
_NO_KEYS: Sequence[str] = ()


class Archive(Protocol):
    """The entities that Redis has forgotten, and the history of all, in another store."""

    async def get(self, key: str) -> Any:
        """Return the record of an entity that ended, as it was."""
        ...

    async def history(self, key: str) -> list[HistoryEntry]:
        """Return every state change that has been written, oldest first."""
        ...


class Reply(NamedTuple):
    """What an operation answers: of each request, and the values of the records that belong to it."""

    answer: Any
    values: Sequence[str | None]


class ScriptCalls(StoreBase[Record]):
    """The entities of one kind, as far as one operation is one call of their script."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        server: RedisClient,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
        archive: Archive | None = None,
        *,
        max_terminal: int = 0,
        clock: Callable[[], int] | None = None,
        prefix: str | None = None,
    ) -> None:
        super().__init__(system, lifecycle, record, world, metrics, values)
        kept = lifecycle.stored_as(KeptInRedis)
        self._server = server
        self._archive = archive
        self._clock = clock
        """The time of a virtual world in microseconds; None where the clock of the server counts."""
        named = str(values.get(kept.prefix or "") or "") if kept else ""
        self._replicas = int(values.get(kept.replicas or "") or 0) if kept else 0
        self._layout = KeyLayout(self._rules, named if prefix is None else prefix, system)
        self._codec: HashCodec[Record] = HashCodec(self._rules, record, words_of(lifecycle))
        self._new = NewRecords(lifecycle, self._rules, self._codec, is_packed=self._layout.is_packed)
        self._scripts = Scripts(
            LuaTable(
                self._layout,
                self._codec,
                system.measured,
                max_terminal,
                self._new.packed,
                is_virtual=clock is not None,
            )
        )
        self._measures = RedisMeasures(metrics, lifecycle.entity)
        self._opened = self._local_now()
        self._is_timeless = not self._rules.on_access and (
            self._rules.retained_s is None or self._layout.does_hash_expire
        )
        self._tokens: deque[str] = deque()
        """Tokens for leases that were drawn and not needed."""
        self._ends = {edge.dead_letter.transition for edge in self._rules.edges.values() if edge.dead_letter}
        self._has_jitter = any(edge.backoff and edge.backoff.jitter for edge in self._rules.edges.values())

    # Arguments.

    def _local_now(self) -> int:
        return self._world.now_ms() * 1000

    def _arguments(self, call: Call | None, /, **more: Any) -> dict[str, Any]:
        """Return the arguments of an operation, with those that belong to each."""
        found: dict[str, Any] = {"actor": call.caller if call else "", **more}
        if self._clock is not None:
            found["now"] = self._clock()
        if call is not None and call.trace and (trace := call.trace_id):
            found["trace"] = trace
        if self._rules.on_access:
            now = self._local_now()
            found["access"] = [
                clock.number + 1
                for clock in self._rules.on_access
                if is_in_force(self._rules, clock.due, now, self._opened)
            ]
        return found

    def _add_chance(self, arguments: dict[str, Any], names: Sequence[str]) -> None:
        """Add a random number where an edge has jitter: one of these, its end, or one of an access."""
        accessed = [clock.change.name for clock in self._rules.on_access if clock.change is not None]
        edges = [self._rules.edges[name] for name in (*names, *accessed) if name in self._rules.edges]
        edges += [self._rules.edges[edge.dead_letter.transition] for edge in edges if edge.dead_letter]
        if any(edge.backoff and edge.backoff.jitter for edge in edges):
            arguments["chance"] = self._world.uniform(0.0, 1.0)

    def _add_tokens(self, arguments: dict[str, Any], count: int) -> list[str]:
        """Add tokens for so many leases; those that are not used are kept for the next."""
        lease = self._rules.lease
        if lease is None or not lease.token:
            return []
        while len(self._tokens) < count:
            self._tokens.append(self._world.new_id())
        drawn = [self._tokens.popleft() for _ in range(count)]
        arguments["tokens"] = drawn
        return drawn

    def _hash(self, key: str) -> str:
        head, tail = self._layout.hash
        return f"{head}{key}{tail}"

    def _call_script(
        self, operation: str, arguments: Mapping[str, Any], keys: Sequence[str] = _NO_KEYS, *more: Any
    ) -> ScriptCall:
        """Make a call of an operation. The script knows all other keys by the prefix, and needs none of them.

        Those that are given tell a cluster where it belongs, and that all of them are in one slot.
        """
        try:
            encoded = orjson.dumps(arguments)
        except TypeError:
            raise Unstorable("a text has half a surrogate pair, which the store cannot hold") from None
        text, digest = self._scripts[operation]
        named = [self._layout.clock, *map(self._hash, keys)]
        return ScriptCall(text, digest, len(named), (*named, encoded, *more))

    async def _run(
        self,
        operation: str,
        arguments: dict[str, Any],
        call: Call | None,
        keys: Sequence[str] = _NO_KEYS,
        *,
        tokens: Sequence[str] = (),
        noted: Mapping[str, Any] = NOTHING,
        repeatable: bool = False,
    ) -> Reply:
        """Run one operation, and audit what it has done."""
        if self._rules.on_access:
            # Whatever is asked, the access itself may take edges.
            self._add_chance(arguments, ())
            tokens = tokens or self._add_tokens(arguments, len(self._rules.on_access) * max(1, len(keys)))
        asked = self._call_script(operation, arguments, keys)
        used = 0
        try:
            (found,) = await self._answer(self._server.evaluate([asked], repeatable=repeatable))
            answer, done, used = decode_json(found[0])
        finally:
            if tokens:
                self._tokens.extendleft(reversed(tokens[used:]))
        if done:
            self._audit_all(done, call, noted)
        return Reply(answer, found[1:])

    # Failures.

    async def _answer(self, work: Awaitable[Answer]) -> Answer:
        """Return what comes of it; a caller learns no more than that the store is away, or full."""
        try:
            return await work
        except (RedisUnavailable, Full, UnicodeEncodeError) as error:
            raise self._to_condition(error) from None

    async def _ask_archive(self, work: Awaitable[Answer]) -> Answer:
        """Return what the archive says; a caller learns no more than that it is away."""
        from runtime.stores.postgres.database import PostgresUnavailable

        try:
            return await work
        except PostgresUnavailable:
            raise self._condition("store_unavailable") from None

    def _to_condition(self, error: RedisUnavailable | Full | UnicodeEncodeError) -> Exception:
        if isinstance(error, RedisUnavailable):
            return self._condition("store_unavailable")
        if isinstance(error, Full):
            return self._condition("store_full")
        return Unstorable(f"{self._entity}: the store cannot hold this value")

    def _state(self, word: str) -> int:
        return self._codec.number(self._lifecycle.status, word)

    # Audit.

    def _audit_all(self, done: Sequence[Any], call: Call | None, noted: Mapping[str, Any]) -> None:
        """Count and log what a script has done to some entities, all changes of a kind together."""
        kinds: dict[tuple[str, str, str], list[Sequence[Any]]] = {}
        notes = iter(done)
        for name, key, owner, fence, traced, actor, more in zip(*[notes] * 7, strict=True):
            # The state that an edge has left, or the age of an update by the clock, which is a number.
            source = more if isinstance(more, str) else ""
            kinds.setdefault((name, actor, source), []).append((key, owner, fence, traced, more))
        for (name, actor, source), changes in kinds.items():
            if name == FORGOTTEN:
                for key, *_ in changes:
                    self._audit_forgotten(key, call)
                continue
            change: Change | str = self._rules.changes.get(name, name)
            if source and isinstance(change, Transition):
                change = self._rules.taken_from(change, self._state(source))
            self._audit_kind(change, actor, changes, call, noted)

    def _audit_kind(
        self,
        change: Change | str,
        actor: str,
        changes: Sequence[Sequence[Any]],
        call: Call | None,
        noted: Mapping[str, Any],
    ) -> None:
        """Count and log changes of one kind; `actor` is who drives it where that is not the caller."""
        name = change if isinstance(change, str) else change.name
        self._measure(change, actor, len(changes))
        caller = call.caller if call is not None else ""
        self._metrics.count_transition(self._entity, name, actor or caller, len(changes))
        event, message, always = self._lines[name]
        if event is None or call is None or not call.log.wants(event):
            return
        shared = {"request_id": call.request_id, **always}
        if isinstance(change, Transition) and change.others:
            shared["from_status"] = self._lifecycle.states[change.source]
        shared |= {field: value for field, value in noted.items() if value}
        if actor not in ("", caller):
            shared["actor"] = actor
        call.tell_all(event, message, shared, [self._line_of(name, *each) for each in changes])

    def _line_of(
        self, name: str, key: str, owner: str, fence: str, traced: str, age: float | str
    ) -> dict[str, Any]:
        """Return what the log line of a change has of its entity."""
        lease, trace = self._rules.lease, self._rules.trace
        line: dict[str, Any] = {self._key_field: key}
        if lease is not None and owner:
            line[lease.owner] = owner
            if fence and fence != "0":
                line[lease.fence] = int(fence)
        if trace and traced:
            line[trace] = traced
        if isinstance(age, float | int):
            line |= self._update_note(name, age)
        return line

    def _measure(self, change: Change | str, actor: str, count: int) -> None:
        """Count what is counted beside the transitions."""
        lease = self._rules.lease
        if not isinstance(change, Transition):
            return
        if actor and lease is not None and change.source == lease.state:
            self._measures.lease_expired(count)
        if change.name in self._ends:
            self._measures.given_up(count)

    def _update_note(self, name: str, age: float) -> dict[str, Any]:
        """Return what the log has of an update by the clock: the age of the entity, and what changed."""
        note: dict[str, Any] = {"age_seconds": round(age / 1e6, 3)}
        update = self._rules.changes[name]
        if isinstance(update, Update):
            for field, value in update.where.items():
                note["from"] = self._codec.encode(field, value)
                if isinstance(after := update.sets.get(field), int):
                    note["to"] = self._codec.encode(field, after)
        return note

    def _audit_forgotten(self, key: str, call: Call | None) -> None:
        self._measures.forgotten()
        if call is not None:
            known: dict[str, object] = {self._key_field: key}
            call.tell(events.FORGOTTEN, f"an index had a {self._entity} that is gone", **known)
