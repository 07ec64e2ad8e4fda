"""A lifecycle of a test as an entity of lifecycle.yaml, and its record as a message of types.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from runtime.model.lifecycles import Default, Due, Index, Lease, Lifecycle, Take, Transition, Update
from runtime.stores.semantics.placement import index_fields, read_placement
from tests.support.stores.records import GONE, IDLE

Data = dict[str, Any]
_SCALARS: dict[Any, str] = {str: "string", bool: "bool", int: "int64", float: "double", datetime: "timestamp"}
COURIER_STATES = {IDLE: "IDLE", GONE: "GONE"}
"""The states of those who hold leases."""


class DescribedEntity(NamedTuple):
    """The parts of a spec that one lifecycle becomes."""

    name: str
    entity: Data
    enums: Data
    messages: Data


def describe_entity(lifecycle: Lifecycle) -> DescribedEntity:
    """Write a lifecycle as an entity with its types."""
    return _Writer(lifecycle).write()


def to_camel(name: str) -> str:
    """Return `errand_row` as `ErrandRow`."""
    return "".join(part.capitalize() for part in name.split("_"))


def enum_value(entity: str, number: int) -> str:
    """Return the name of a number of a field that is an enum."""
    return f"{entity.upper()}_VALUE_{number or 'UNSPECIFIED'}"


class _Writer:
    def __init__(self, lifecycle: Lifecycle) -> None:
        assert lifecycle.record is not None
        self._lifecycle, self._record = lifecycle, lifecycle.record
        self._placed = read_placement(lifecycle)
        self._edges = tuple(lifecycle.transitions.values())
        self._changes: tuple[Transition | Update, ...] = (*self._edges, *lifecycle.updates.values())
        self._compared = self._find_compared()
        self._counted = self._find_counted()

    def write(self) -> DescribedEntity:
        lifecycle, name = self._lifecycle, to_camel(self._lifecycle.entity)
        enums: Data = {}
        states = {
            f"{name.upper()}_STATE_UNSPECIFIED": 0,
            **{text: each for each, text in lifecycle.states.items()},
        }
        enums[f"{name}State"] = {"values": {text: {"number": each} for text, each in states.items()}}
        if self._compared:
            values = {enum_value(lifecycle.entity, number): {"number": number} for number in self._numbers()}
            enums[f"{name}Value"] = {"values": values}
        messages: Data = {}
        self._describe_message(self._record, f"{name}Row", messages, is_record=True)
        return DescribedEntity(lifecycle.entity, self._entity(f"{name}Row"), enums, messages)

    # Types.

    def _describe_message(self, record: type[Any], name: str, messages: Data, *, is_record: bool) -> None:
        fields: Data = {}
        for number, (field, hint) in enumerate(get_type_hints(record).items(), 1):
            types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            inner = next(each for each in types if each is not type(None))
            fields[field] = {"number": number, "type": self._type(field, inner, messages, is_record)}
            if len(types) > 1:
                fields[field]["optional"] = True
        messages[name] = {"doc": f"A {self._lifecycle.entity}.", "fields": fields}

    def _type(self, field: str, hint: Any, messages: Data, is_record: bool) -> str:
        name = to_camel(self._lifecycle.entity)
        if get_origin(hint) is tuple:
            return "repeated string"
        if issubclass(hint, Struct):
            inner = f"{name}{hint.__name__}"
            self._describe_message(hint, inner, messages, is_record=False)
            return inner
        if is_record and field == self._lifecycle.status:
            return f"{name}State"
        if is_record and field in self._compared:
            return f"{name}Value"
        if is_record and hint is int and field in self._counted:
            return "uint32"
        if is_record and hint is int and field in self._times():
            return "uint64"
        return _SCALARS[hint]

    def _find_compared(self) -> frozenset[str]:
        """Fields whose numbers are values of an enum: those that are compared, and what is copied to them."""
        found = {name for change in self._changes for name in change.where}
        found |= {fill.by for fill in self._lifecycle.defaults.values()}
        for index in self._placed.indexes.values():
            found |= {*index_fields(index)}
        pairs = [
            *self._lifecycle.copy.items(),
            *(pair for edge in self._edges for pair in edge.copy.items()),
        ]
        for _ in pairs:
            found |= {each for pair in pairs if found & {*pair} for each in pair}
        return frozenset(found)

    def _numbers(self) -> list[int]:
        """All values of those fields."""
        found: set[Any] = {0}
        found |= {number for fill in self._lifecycle.defaults.values() for number in fill.of}
        found |= {*self._lifecycle.lease.claim_order} if self._lifecycle.lease else set()
        for change in self._changes:
            found |= {*change.where.values()}
            found |= {value for name, value in change.sets.items() if name in self._compared}
        return sorted(found)

    def _find_counted(self) -> frozenset[str]:
        found = {self._lifecycle.lease.fence} if self._lifecycle.lease else set()
        found |= {self._lifecycle.revision} if self._lifecycle.revision else set()
        for edge in self._edges:
            found |= {edge.increment} if edge.increment else set()
            found |= {edge.backoff.count} if edge.backoff and edge.backoff.count else set()
            if edge.dead_letter:
                found |= {each for each in (edge.dead_letter.count, edge.dead_letter.less) if each}
        return frozenset(found)

    def _times(self) -> frozenset[str]:
        lifecycle = self._lifecycle
        found = {*lifecycle.creation_stamps, lifecycle.listed_by or ""}
        for change in self._changes:
            found |= {*change.stamps}
        return frozenset(found)

    # The lifecycle.

    def _state(self, number: int) -> str:
        return self._lifecycle.states[number]

    def _states(self, numbers: Any) -> list[str]:
        return [self._state(each) for each in sorted(numbers)]

    def _entity(self, record: str) -> Data:
        lifecycle = self._lifecycle
        create: Data = {
            "by": sorted(lifecycle.creators),
            "trigger": "A test.",
            "stamps": [*lifecycle.creation_stamps],
        }
        create |= {"copy": dict(lifecycle.copy)} if lifecycle.copy else {}
        create |= {"to": self._states(lifecycle.begins)} if lifecycle.begins else {}
        if lifecycle.defaults:
            create["defaults"] = {name: self._fill(fill) for name, fill in lifecycle.defaults.items()}
        if lifecycle.ceiling:
            create["ceiling"] = {"index": lifecycle.ceiling.index, "max": lifecycle.ceiling.max}
        entity: Data = {
            "doc": f"A {lifecycle.entity} of a test.",
            "key": lifecycle.key,
            "record": record,
            "status": lifecycle.status,
            "held_by": lifecycle.holder,
            **self._placed_words(),
            "initial": self._state(lifecycle.initial),
            "terminal": self._states(lifecycle.terminal),
            "create": create,
            "transitions": {edge.name: self._edge(edge) for edge in self._edges},
            # The contract suite bounds those that have ended with any lifecycle.
            "retention": "ended",
        }
        if lifecycle.resting:
            entity["resting"] = self._states(lifecycle.resting)
        if lifecycle.listed_by:
            entity["listed_by"] = lifecycle.listed_by
        if not lifecycle.logged:
            entity["logged"] = False
        if lifecycle.revision:
            entity["revision"] = lifecycle.revision
        if overrides := lifecycle.overrides:
            values = {text: dict(row) for text, row in overrides.values.items()}
            entity["overrides"] = {"by": overrides.by, "for": values}
        if lifecycle.lease:
            entity["lease"] = self._lease(lifecycle.lease)
        if lifecycle.updates:
            entity["updates"] = {update.name: self._update(update) for update in lifecycle.updates.values()}
        if lifecycle.deletable:
            entity["delete"] = self._deletion()
        return entity

    def _placed_words(self) -> Data:
        """The words about uniqueness, indexes and retention."""
        placed = self._placed
        found: Data = {}
        if lasting := [name for name, seconds in placed.unique.items() if seconds is None]:
            found["unique"] = lasting
        if remembered := {name: seconds for name, seconds in placed.unique.items() if seconds is not None}:
            found["unique_for"] = remembered
        if placed.indexes:
            found["indexes"] = {name: self._index(index) for name, index in placed.indexes.items()}
        if placed.retained_s:
            found["expires"] = placed.retained_s
        return found

    def _index(self, index: Index) -> Data:
        words = {"score": index.score, "only_if": index.only_if, "only_unless": index.only_unless}
        by = index_fields(index)
        return {"in": self._states(index.states), **_given({"by": by[0] if by else None, **words})}

    def _fill(self, fill: Default) -> Data:
        return {"by": fill.by, "of": {self._value(fill.by, number): name for number, name in fill.of.items()}}

    def _value(self, field: str, number: object) -> Any:
        """Return a value of a field as the spec has it."""
        if field in self._compared:
            assert isinstance(number, int)
            return enum_value(self._lifecycle.entity, number)
        return number

    def _deletion(self) -> Data:
        lifecycle = self._lifecycle
        found: Data = {
            "by": sorted(lifecycle.deleters),
            "trigger": "A test.",
            "from": self._states(lifecycle.deletable),
        }
        if lifecycle.deletion_due:
            found["due"] = self._due(lifecycle.deletion_due)
        if lifecycle.unless_holding:
            found["unless_holding"] = lifecycle.unless_holding
        return found

    def _edge(self, edge: Transition) -> Data:
        found = {
            "from": self._sources(edge),
            "to": self._state(edge.target),
            **self._change(edge),
            **_given(
                {
                    "when": [*edge.when],
                    "by_name": edge.by_name,
                    "copy": dict(edge.copy),
                    "increment": edge.increment,
                    "reason": edge.reason,
                    "multiply": {
                        name: {"times": each.times, "max": each.max} for name, each in edge.multiply.items()
                    },
                }
            ),
        }
        if waits := edge.backoff:
            sources = {"base": waits.base, "max": waits.max, "times": waits.times, "jitter": waits.jitter}
            written = {word: _source(each) for word, each in sources.items() if each is not None}
            found["backoff"] = {"kind": waits.kind, "until": waits.until, **written}
            found["backoff"] |= {"count": waits.count} if waits.count else {}
        if end := edge.dead_letter:
            needed = {"transition": end.transition, "count": end.count, "limit": _source(end.limit)}
            found["dead_letter"] = {**needed, **_given({"less": end.less})}
        return found

    def _sources(self, edge: Transition) -> str | list[str]:
        first, others = self._state(edge.source), self._states(edge.others)
        return [first, *others] if others else first

    def _update(self, update: Update) -> Data:
        return {
            "in": self._states(update.states),
            **self._change(update),
            **_given({"fenced": update.fenced}),
        }

    def _change(self, change: Transition | Update) -> Data:
        """The words that an edge and an update share."""
        found: Data = {"by": sorted(change.actors), "trigger": "A test."}
        found |= _given(
            {
                "where": {name: self._value(name, value) for name, value in change.where.items()},
                "stamps": [*change.stamps],
                "sets": {name: self._value(name, value) for name, value in change.sets.items()},
                "from_request": {name: dict(_iter_take(take)) for name, take in change.from_request.items()},
                "clear": [*change.clear],
            }
        )
        dues = [self._due(due) for due in change.dues]
        if dues:
            found["due"] = dues if len(dues) > 1 else dues[0]
        return found

    def _due(self, due: Due) -> Data:
        words: Data = {"at": due.at, "after": due.after, "batch": due.batch, "grace": due.grace}
        words |= {"values": dict(due.values), "on_access": due.on_access}
        if due.holder_in is not None:
            words["holder_in"] = COURIER_STATES[due.holder_in]
        return {"by": due.by, "every": due.every, **_given(words)}

    def _lease(self, lease: Lease) -> Data:
        found: Data = {
            "state": self._state(lease.state),
            "owner": lease.owner,
            "fence": lease.fence,
            "seconds": _source(lease.seconds),
            "oldest_by": lease.oldest_by,
        }
        ranked = index_fields(self._placed.indexes[lease.index]) if lease.index else ()
        words: Data = {
            name: getattr(lease, name)
            for name in ("expires", "renewed", "index", "keeps_owner", "token", "only")
        }
        words["claim_order"] = [self._value(ranked[0], number) for number in lease.claim_order]
        if holder := lease.holder:
            words["holder"] = {
                "entity": holder.entity,
                "in": [COURIER_STATES[state] for state in sorted(holder.states)],
                "capacity": holder.capacity,
                "offers": holder.offers,
                "needs": holder.needs,
                **_given({"booked": holder.booked}),
            }
        return {**found, **_given(words)}


def _source(name: str | float) -> Data | float:
    """Write where a number comes from: itself, a variable, or a field of the record."""
    return {"env" if name.isupper() else "field": name} if isinstance(name, str) else name


def _given(words: Data) -> Data:
    """Leave out what is as it is where nothing is said."""
    return {name: value for name, value in words.items() if value not in (None, False, "", [], {}, ())}


def _iter_take(take: Take) -> Iterator[tuple[str, Any]]:
    yield "from", take.source
    yield from _given({"default": take.default, "keep_first": take.keep_first}).items()
