"""The store in memory: a transition is a swap in a dictionary, atomic as nothing is awaited within it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import attrgetter
from typing import Any, Generic

from msgspec import Struct
from msgspec.structs import replace

from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe import log as events
from runtime.observe.metrics import Metrics
from runtime.stores.listing import Listing
from runtime.stores.store import GuardBreach, Moved, NoSuchEntity, Record
from runtime.world import World


class MemoryStore(Generic[Record]):
    """The entities of one kind, as frozen structs. Beyond the bound the oldest terminal ones go."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        world: World,
        metrics: Metrics,
        *,
        max_terminal: int = 0,
    ) -> None:
        self._roles = system.roles
        self._lifecycle = lifecycle
        self._world = world
        self._metrics = metrics
        self._records: dict[str, Any] = {}
        self._listing = Listing()
        self._terminal: deque[str] = deque()
        self._max_terminal = max_terminal
        self._guarded = _guarded_fields(lifecycle, record)
        self._key = attrgetter(lifecycle.key)
        self._state = attrgetter(lifecycle.status)
        self._order = attrgetter(lifecycle.listed_by) if lifecycle.listed_by else _unordered
        stamps = sorted(self._guarded - {lifecycle.key, lifecycle.status})
        self._stamps = [attrgetter(stamp) for stamp in stamps]
        self._told = _told(lifecycle)
        metrics.add_census(self)

    async def create(self, record: Record, call: Call) -> Record:
        lifecycle = self._lifecycle
        key: str = self._key(record)
        if key in self._records:
            raise GuardBreach(f"{lifecycle.entity} {key} exists already")
        if call.caller not in lifecycle.creators:
            raise self._denied(
                call, f"only {', '.join(sorted(lifecycle.creators))} may create a {lifecycle.entity}"
            )
        now = self._world.now_ms()
        changes: dict[str, Any] = {lifecycle.status: lifecycle.initial}
        changes.update(dict.fromkeys(lifecycle.creation_stamps, now))
        record = self._records[key] = replace(record, **changes)
        self._listing.add(lifecycle.initial, self._order(record), key)
        self._changed("create", key, call)
        return record

    async def get(self, key: str) -> Record | None:
        return self._records.get(key)

    async def move(self, key: str, source: int, target: int, call: Call, /, **given: str) -> Moved:
        lifecycle = self._lifecycle
        edge = require_edge(self._roles, lifecycle, call.caller, call.method, source, target)
        record = self._existing(key)
        current: int = self._state(record)
        if current != source or (edge.when and not all(getattr(record, flag) for flag in edge.when)):
            if current in lifecycle.terminal and target in lifecycle.terminal - {current}:
                call.tell(
                    events.TERMINAL_WRITE_IGNORED,
                    f"{lifecycle.entity} is {lifecycle.states[current]} already",
                    **{
                        lifecycle.key: key,
                        "expected_status": lifecycle.states[source],
                        "current_status": lifecycle.states[current],
                    },
                )
            return Moved(False, current)
        # A clock that steps back must not make an entity move before it was created.
        now = max([self._world.now_ms(), *[stamp(record) for stamp in self._stamps]])
        changes: dict[str, Any] = {lifecycle.status: target}
        changes.update(dict.fromkeys(edge.stamps, now))
        changes.update(edge.sets)
        for name, take in edge.takes.items():
            kept = take.keep_first and getattr(record, name)
            changes[name] = kept or given.get(take.source) or take.default
        self._records[key] = replace(record, **changes)
        self._listing.move(source, target, self._order(record), key)
        self._changed(edge.name, key, call, given)
        if target in lifecycle.terminal:
            self._retain(key)
        return Moved(True, target)

    async def update(self, key: str, /, **changes: Any) -> Record:
        record = self._existing(key)
        self._refuse_guarded(changes)
        changed = self._records[key] = replace(record, **changes)
        return changed  # type: ignore[no-any-return]

    async def delete(self, key: str, expected: int, call: Call) -> Moved:
        lifecycle = self._lifecycle
        if call.caller not in lifecycle.deleters:
            raise self._denied(
                call, f"only {', '.join(sorted(lifecycle.deleters))} may delete a {lifecycle.entity}"
            )
        record = self._existing(key)
        current: int = self._state(record)
        if current != expected or current not in lifecycle.deletable:
            return Moved(False, current)
        self._drop(key)
        self._changed("delete", key, call, {"from_status": lifecycle.states[current]})
        return Moved(True, current)

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        keys, more = self._listing.page(states, offset, size, newest_first=newest_first)
        return [self._records[key] for key in keys], more

    def census(self) -> Iterator[tuple[str, str, int, float]]:
        """How many entities there are in each state, and how old the oldest is."""
        now = self._world.now_ms()
        for state, name in self._lifecycle.states.items():
            oldest = self._listing.oldest(state)
            age = 0.0 if oldest is None or not self._lifecycle.listed_by else max(0, now - oldest) / 1000
            yield self._lifecycle.entity, name, self._listing.count(state), age

    def _existing(self, key: str) -> Any:
        try:
            return self._records[key]
        except KeyError:
            raise NoSuchEntity(key) from None

    def _refuse_guarded(self, changes: dict[str, Any]) -> None:
        if breached := sorted(self._guarded & changes.keys()):
            raise GuardBreach(
                f"{', '.join(breached)} of a {self._lifecycle.entity} changes only with its state"
            )

    def _denied(self, call: Call, problem: str) -> Exception:
        make: Callable[..., Exception] = self._roles["permission_denied"]
        return make(caller=call.caller, method=call.method, problem=problem)

    def _retain(self, key: str) -> None:
        if not self._max_terminal:
            return
        self._terminal.append(key)
        while len(self._terminal) > self._max_terminal:
            self._drop(self._terminal.popleft())

    def _drop(self, key: str) -> None:
        record = self._records.pop(key)
        self._listing.remove(self._state(record), self._order(record), key)

    def _changed(self, name: str, key: str, call: Call, given: Mapping[str, str] | None = None) -> None:
        """Counts and tells of a state change."""
        lifecycle = self._lifecycle
        self._metrics.count_transition(lifecycle.entity, name, call.caller)
        if call.log.wants(events.TRANSITION):
            message, always = self._told[name]
            line = call.begin_line(events.TRANSITION, message)
            line.update(always)
            line[lifecycle.key] = key
            if given:
                for field, text in given.items():
                    if text:
                        line[field] = text
            call.log.end_line(events.TRANSITION, line)


def _unordered(_record: object) -> int:
    return 0


def _told(lifecycle: Lifecycle) -> dict[str, tuple[str, dict[str, str]]]:
    """By transition: the message of its log line, and what the line says of each such transition."""
    states = lifecycle.states
    ends = {
        edge.name: {"from_status": states[edge.source], "to_status": states[edge.target]}
        for edge in lifecycle.edges.values()
    }
    ends |= {"create": {"to_status": states[lifecycle.initial]}, "delete": {}}
    return {
        name: (f"{lifecycle.entity} {name}", {"entity": lifecycle.entity, "transition": name, **each})
        for name, each in ends.items()
    }


def _guarded_fields(lifecycle: Lifecycle, record: type[Any]) -> frozenset[str]:
    """The fields that only a transition changes; all that the lifecycle names must be in the record."""
    if not (issubclass(record, Struct) and record.__struct_config__.frozen):
        raise TypeError(f"{record.__name__} must be a msgspec.Struct with frozen=True to be kept in a store")
    stamps = {stamp for edge in lifecycle.edges.values() for stamp in edge.stamps}
    guarded = frozenset({lifecycle.key, lifecycle.status, *lifecycle.creation_stamps, *stamps})
    named = guarded | {
        name for edge in lifecycle.edges.values() for name in (*edge.sets, *edge.takes, *edge.when)
    }
    if lacking := sorted(named - set(record.__struct_fields__)):
        raise TypeError(
            f"{record.__name__} lacks {', '.join(lacking)}, which the lifecycle of {lifecycle.entity} names"
        )
    return guarded
