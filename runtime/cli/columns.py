"""Columns of a listing: choose those that fit, keys and states first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from msgspec import Struct

from runtime.model.system import System

GAP = 2
"""Spaces between two columns."""
_KEY, _STATE, _ORDER, _PLAIN, _NESTED, _TIME, _OTHER = range(7)
_TIMESTAMP = "google.protobuf.Timestamp"


class Ranking(Struct, frozen=True):
    """The rank of fields by the spec: keys of entities, their states, and the times that order listings."""

    keys: frozenset[str]
    states: frozenset[str]
    orders: frozenset[str]
    times: frozenset[str]
    json_fields: frozenset[str]

    @classmethod
    def of(cls, system: System, times: frozenset[str]) -> Ranking:
        """Make the ranking from the lifecycles of a system; `times` are the numeric fields with times."""
        lifecycles = system.lifecycles.values()
        return cls(
            keys=frozenset(each.key for each in lifecycles),
            states=frozenset(each.status for each in lifecycles),
            orders=frozenset(each.listed_by for each in lifecycles if each.listed_by),
            times=times,
            json_fields=system.json_fields,
        )

    def ranks(self, descriptor: Descriptor, names: Sequence[str]) -> dict[str, int]:
        """Rank the columns of a message, the most important first."""
        found = {name: self._rank(descriptor, name) for name in names}
        # One key identifies a row; others are references.
        for name in [name for name, rank in found.items() if rank == _KEY][1:]:
            found[name] = _PLAIN
        return dict(sorted(found.items(), key=lambda each: each[1]))

    def _rank(self, descriptor: Descriptor, name: str) -> int:
        outer, _, inner = name.partition(".")
        field = descriptor.fields_by_name.get(outer)
        if field is None or field.is_repeated or field.full_name in self.json_fields:
            return _OTHER
        if inner:
            nested = field.message_type
            within = self._rank(nested, inner) if nested is not None else _OTHER
            return _NESTED if within <= _NESTED else _OTHER
        if name in self.keys:
            return _KEY
        if name in self.states and field.enum_type is not None:
            return _STATE
        if name in self.orders:
            return _ORDER
        if name in self.times or (field.message_type and field.message_type.full_name == _TIMESTAMP):
            return _TIME
        is_plain = field.message_type is None and field.type != FieldDescriptor.TYPE_BYTES
        return _PLAIN if is_plain else _OTHER


def choose_columns(
    ranking: Ranking, descriptor: Descriptor, rows: Sequence[Mapping[str, str]], width: int, nothing: str
) -> list[str]:
    """Choose the columns of a listing that fit into a width, in the order of the message.

    A column without any value is left out, unless it is a key or a state.
    """
    names = list(rows[0])
    chosen: set[str] = set()
    used = -GAP
    for name, rank in ranking.ranks(descriptor, names).items():
        is_needed = rank <= _STATE
        if not is_needed and all(row[name] == nothing for row in rows):
            continue
        needed = GAP + max(len(name), *(_longest_line(row[name]) for row in rows))
        if is_needed or not chosen or used + needed <= width:
            chosen.add(name)
            used += needed
    return [name for name in names if name in chosen]


def _longest_line(text: str) -> int:
    return max((len(line) for line in text.splitlines()), default=0)
