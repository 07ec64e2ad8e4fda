"""The rules of one lifecycle for one record type, prepared once: edges by name, kinds of fields, clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from runtime.model.lifecycles import Amount, Due, Index, Lifecycle, Transition, Update
from runtime.stores.semantics.placement import index_fields, read_placement

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EMPTY: Mapping[type, object] = {str: "", bytes: b"", bool: False, int: 0, float: 0.0, tuple: (), list: []}

Change = Transition | Update


class Clock(Struct, frozen=True):
    """A change and one of the clocks that drive it; no change means the deletion."""

    number: int
    change: Change | None
    due: Due
    place: int = 0
    """Its place among the clocks of the change."""

    @property
    def statement(self) -> str:
        """The name of the generated statement that finds what is due."""
        name = self.change.name if self.change is not None else "delete"
        return f"due_{self.place + 1}_{name}" if self.place else f"due_{name}"


class Rules:
    """What follows from a lifecycle and its record type, whatever becomes of any entity."""

    def __init__(self, lifecycle: Lifecycle, record: type[Any], values: Mapping[str, Any]) -> None:
        self.lifecycle = lifecycle
        self.values = values
        """The variables of the environment, by name."""
        self.entity = lifecycle.entity
        self.names: tuple[str, ...] = record.__struct_fields__
        self._hints = _type_hints(record)
        self._defaults = _defaults(record)
        self._unset: dict[str, Any] = {}
        self.instants = frozenset(name for name in self.names if datetime in self.types_of(name))
        """Fields whose times are datetimes; other times are milliseconds since the epoch."""
        self.key, self.state = attrgetter(lifecycle.key), attrgetter(lifecycle.status)
        self.edges = lifecycle.transitions
        self._taken: dict[tuple[str, int], Transition] = {}
        self.changes: dict[str, Change] = {**self.edges, **lifecycle.updates}
        placed = read_placement(lifecycle)
        self.unique, self.indexes, self.trace = placed.unique, placed.indexes, placed.trace
        self.retained_s = float(values[placed.retained_s]) if placed.retained_s else None
        self.lease = lifecycle.lease
        self.entering = _entering(lifecycle)
        self.leased_index: Index | None = (
            self.indexes[self.lease.index] if self.lease and self.lease.index else None
        )
        named = index_fields(self.leased_index) if self.leased_index else ()
        self.rank_field: str | None = named[0] if named else None
        """The field whose values are served in the order of `claim_order`."""
        self.waits = {edge.backoff.until: edge.target for edge in self.edges.values() if edge.backoff}
        """Times until which entities wait, and the state in which they do."""
        self.not_before = self._not_before()
        self.held_back_by = self.leased_index.only_unless if self.leased_index else None
        self.stamps = self._stamps()
        self._stamp_values = [attrgetter(name) for name in self.stamps]
        self._has_instants = not self.instants.isdisjoint(self.stamps)
        self.clocks = tuple(Clock(number, *each) for number, each in enumerate(_clocks(lifecycle)))
        self.on_access = tuple(each for each in self.clocks if each.due.on_access)

    # Fields.

    def types_of(self, name: str) -> tuple[Any, ...]:
        """Return the types that a field can have."""
        hint = self._hints.get(name)
        if get_origin(hint) in (Union, UnionType):
            return get_args(hint)
        if hint is None:
            default = self._defaults.get(name)
            return () if default is None else (type(default),)
        return (get_origin(hint) or hint,)

    def unset(self, name: str) -> Any:
        """Return what a field is where it is unset: None if it can be, else its default."""
        if name not in self._unset:
            self._unset[name] = self._find_unset(name)
        return self._unset[name]

    def _find_unset(self, name: str) -> Any:
        types = self.types_of(name)
        if type(None) in types:
            return None
        if name in self._defaults:
            return self._defaults[name]
        return next((_EMPTY[each] for each in types if each in _EMPTY), None)

    def is_unset(self, name: str, value: Any) -> bool:
        """Whether a field has nothing yet; an empty text is nothing."""
        return value is None or value == "" or value == self.unset(name)

    # Times.

    def time_value(self, name: str, moment: int) -> Any:
        """Return a moment as a field of the record has it."""
        return EPOCH + timedelta(microseconds=moment) if name in self.instants else moment // 1000

    def moment_at(self, record: Any, name: str) -> int | None:
        """Return the time of a field as a moment."""
        return to_moment(getattr(record, name))

    def moment_after(self, record: Any, now: int) -> int:
        """Return now, but never a time before a stamp that the record has: clocks may step back."""
        if self._has_instants:
            stamps = [to_moment(stamp(record)) or 0 for stamp in self._stamp_values]
            return max([now, *stamps])
        return 1000 * max([now // 1000, *[stamp(record) or 0 for stamp in self._stamp_values]])

    def _stamps(self) -> tuple[str, ...]:
        """The times that say when something has happened, and so lie never ahead."""
        lifecycle = self.lifecycle
        found = {*lifecycle.creation_stamps}
        for change in self.changes.values():
            found |= {*change.stamps}
        ahead = {*self.waits, self.lease.expires if self.lease else ""}
        return tuple(name for name in self.names if name in found - ahead)

    def _not_before(self) -> str | None:
        """The time before which nothing is claimed: that of claim order, where entities wait for it."""
        lease = self.lease
        return lease.oldest_by if lease and lease.oldest_by in self.waits else None

    # Edges.

    def taken_from(self, edge: Transition, state: int) -> Transition:
        """Return an edge as it is taken out of one of its states."""
        if state == edge.source:
            return edge
        if (edge.name, state) not in self._taken:
            self._taken[edge.name, state] = edge.taken_from(state)
        return self._taken[edge.name, state]

    # Numbers.

    def number(self, record: Any, path: Amount) -> float:
        """Return a number of the record by its path, that of a variable, which is in upper case, or itself.

        `overrides` may have another value of the variable for some texts of the record.
        """
        if not isinstance(path, str):
            return path
        if not path.islower():
            overrides = self.lifecycle.overrides
            own = overrides.values.get(getattr(record, overrides.by)) if overrides else None
            return float(own[path] if own and path in own else self.values[path])
        value = record
        for name in path.split("."):
            value = getattr(value, name)
        return float(value or 0)

    @property
    def guarded(self) -> frozenset[str]:
        """The fields that `update` may not touch: others own them."""
        lifecycle, lease = self.lifecycle, self.lease
        found = {lifecycle.key, lifecycle.status, *lifecycle.creation_stamps, *self.unique, *self.waits}
        found |= {lifecycle.revision} if lifecycle.revision else set()
        for change in self.changes.values():
            found |= {*change.stamps}
            if isinstance(change, Transition):
                found |= {*change.multiply, *([change.increment] if change.increment else [])}
        if lease is not None:
            found |= {each for each in (lease.owner, lease.expires, lease.fence, lease.token) if each}
            found |= {each for each in (lease.oldest_by, lease.renewed, lease.only) if each}
        for index in self.indexes.values():
            found |= {*index_fields(index)}
            found |= {each for each in (index.score, index.only_if, index.only_unless) if each}
        return frozenset(found & {*self.names})

    @property
    def named(self) -> frozenset[str]:
        """All fields that the lifecycle names, which a record must have."""
        found = {*self.lifecycle.creation_stamps, *self.lifecycle.copy, *self.lifecycle.copy.values()}
        found |= {self.lifecycle.key, self.lifecycle.status}
        found |= {self.lifecycle.revision} if self.lifecycle.revision else set()
        for change in self.changes.values():
            found |= {*change.stamps, *change.sets, *change.from_request, *change.clear, *change.where}
            if isinstance(change, Transition):
                found |= {*change.when, *change.copy, *change.copy.values(), *change.multiply}
                found |= {change.increment} if change.increment else set()
                if waits := change.backoff:
                    found |= {waits.until, *([waits.count] if waits.count else [])}
        if (lease := self.lease) is not None:
            own = (lease.owner, lease.expires, lease.fence, lease.oldest_by, lease.renewed, lease.token)
            found |= {each for each in own if each}
        found |= {self.lifecycle.overrides.by} if self.lifecycle.overrides else set()
        return frozenset(found)


def to_moment(value: Any) -> int | None:
    """Return a time of a record, a datetime or milliseconds, as a moment."""
    if value is None:
        return None
    return value * 1000 if isinstance(value, int) else (value - EPOCH) // _MICROSECOND


def revised(rules: Rules, old: Any, new: Any) -> Any:
    """`revision`: count a write of a record, whatever has led to it and however many edges that were."""
    name = rules.lifecycle.revision
    return new if name is None else replace(new, **{name: (getattr(old, name) or 0) + 1})


def to_microseconds(seconds: float) -> int:
    """Return a length of time as moments are counted."""
    return int(seconds * 1_000_000)


def prepare_rules(lifecycle: Lifecycle, record: type[Any], values: Mapping[str, Any]) -> Rules:
    """Prepare the rules, for a record that is frozen and has every field that the lifecycle names."""
    if not (issubclass(record, Struct) and record.__struct_config__.frozen):
        raise TypeError(f"{record.__name__} must be a msgspec.Struct with frozen=True to be kept in a store")
    rules = Rules(lifecycle, record, values)
    if lacking := sorted(rules.named - set(record.__struct_fields__)):
        raise TypeError(
            f"{record.__name__} lacks {', '.join(lacking)}, which the lifecycle of {lifecycle.entity} names"
        )
    return rules


def _entering(lifecycle: Lifecycle) -> Transition | None:
    lease = lifecycle.lease
    return next((each for each in lifecycle.edges.values() if lease and each.target == lease.state), None)


def _clocks(lifecycle: Lifecycle) -> Iterator[tuple[Change | None, Due, int]]:
    changes: list[Change] = [*lifecycle.transitions.values(), *lifecycle.updates.values()]
    for change in changes:
        yield from ((change, due, place) for place, due in enumerate(change.dues))
    if lifecycle.deletion_due is not None:
        yield None, lifecycle.deletion_due, 0


def _type_hints(record: type[Any]) -> dict[str, Any]:
    try:
        # A field may be called like a type: names are those of the module, and not of the record.
        return get_type_hints(record, localns={})
    except NameError:  # A type that was imported for the type checker alone; defaults tell enough.
        return {}


def _defaults(record: type[Any]) -> dict[str, Any]:
    names, defaults = record.__struct_fields__, record.__struct_defaults__
    first = len(names) - len(defaults)
    later = zip(names[first:], defaults, strict=True)
    required = {*names[:first], *(name for name, default in later if default is NODEFAULT)}
    empty = record(**dict.fromkeys(required))
    return {name: getattr(empty, name) for name in names if name not in required}
