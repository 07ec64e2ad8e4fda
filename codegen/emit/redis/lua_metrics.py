"""What a script counts when something happens to an entity, as `metrics.yaml` says: fields of one hash.

A field is `<metric>|<value of each label>`; a histogram goes on with `|le|<bound>` and `|sum`, a window with
the number of its slot. The functions are pure, so that scripts, tables and pages come from one answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from codegen.language.lifecycle import Entity
from codegen.language.metrics import Counted, Metric
from codegen.source.spec import Spec, field_enum


@dataclass(frozen=True, slots=True)
class Label:
    """Where the value of a label comes from: exactly one of the three is set."""

    text: str | None = None
    """What it always is."""
    field: str | None = None
    """The record field, as it is after the change."""
    given: str | None = None
    """What the change is given from outside."""


@dataclass(frozen=True, slots=True)
class Counting:
    """One metric that grows by one when something happens."""

    metric: str
    type: str
    """`counter`, `histogram` or `window`."""
    labels: tuple[Label, ...]
    since: str | None = None
    """The record time from which a histogram measures."""
    bounds: tuple[str, ...] = ()
    """Upper bounds of a histogram in seconds, as they stand in the fields; what exceeds them is in `+Inf`."""


def counted(spec: Spec, entity: str, happening: str) -> list[Counting]:
    """What is counted when a transition or shift of an entity applies, or on its creation or deletion."""
    return [
        Counting(
            name,
            metric.type,
            tuple(_label(spec, counts, entity, happening, label) for label in label_names(metric)),
            metric.since,
            bounds(metric),
        )
        for name, metric in spec.metrics.metrics.items()
        if (counts := metric.counts) is not None and f"{entity}.{happening}" in counts.on
    ]


def label_names(metric: Metric) -> tuple[str, ...]:
    """The labels of what is counted, in the order in which their values stand in a field."""
    counts = metric.counts
    if counts is None:
        return ()
    fixed = (name for labels in counts.fixed.values() for name in labels)
    return tuple(dict.fromkeys((*counts.labels, *fixed)))


def bounds(metric: Metric) -> tuple[str, ...]:
    """The upper bounds of a histogram as text."""
    return tuple(f"{bound:.12g}" for bound in metric.buckets)


def series(spec: Spec, metric: Metric) -> list[tuple[str, ...]]:
    """The values of the labels of every series that there can be; each has a zero from the start."""
    found: dict[tuple[str, ...], None] = {}
    if (counts := metric.counts) is None:
        return []
    for each in counts.on:
        entity, happening = each.split(".")
        choices = [_choices(spec, counts, entity, happening, name) for name in label_names(metric)]
        found |= dict.fromkeys(product(*choices))
    return [*found]


def _label(spec: Spec, counts: Counted, entity: str, happening: str, label: str) -> Label:
    if (text := counts.fixed.get(f"{entity}.{happening}", {}).get(label)) is not None:
        return Label(text=text)
    row = spec.lifecycle.entities[entity]
    source = counts.labels.get(label)
    if source is None:
        return Label(text="")
    if source == row.status and (states := _states_after(row, happening)) and len(states) == 1:
        return Label(text=_word(spec, row, row.status, states[0]))
    if source in spec.messages[row.record].fields:
        return Label(field=source)
    return Label(given=source)


def _choices(spec: Spec, counts: Counted, entity: str, happening: str, label: str) -> tuple[str, ...]:
    """All values that a label can have when something happens."""
    origin = _label(spec, counts, entity, happening, label)
    if origin.text is not None:
        return (origin.text,)
    if label in counts.values:
        return counts.values[label]
    row = spec.lifecycle.entities[entity]
    if origin.field == row.status:
        return tuple(_word(spec, row, row.status, state) for state in _states_after(row, happening))
    return tuple(words(spec, row, origin.field)) if origin.field else ()


def words(spec: Spec, entity: Entity, field: str) -> dict[str, str]:
    """The texts of an enum field as Redis has them, and the value of each; not the unspecified one."""
    enum = field_enum(spec, spec.messages[entity.record].fields[field])
    values = enum.values.items() if enum else ()
    return {enum.word(name): name for name, value in values if enum and value.number != 0}


def _word(spec: Spec, entity: Entity, field: str, value: str) -> str:
    enum = field_enum(spec, spec.messages[entity.record].fields[field])
    return enum.word(value) if enum else value


def _states_after(entity: Entity, happening: str) -> tuple[str, ...]:
    """The states that an entity can be in after something happened to it."""
    if happening == "create":
        return (entity.initial,)
    if happening in entity.transitions:
        return (entity.transitions[happening].to,)
    if happening in entity.shifts:
        return tuple(entity.shifts[happening].in_)
    return tuple(entity.delete.from_) if happening == "delete" and entity.delete else ()


def happenings(entity: Entity) -> Iterator[str]:
    """Everything that can be counted of an entity."""
    yield "create"
    yield from entity.transitions
    yield from entity.shifts
    if entity.delete:
        yield "delete"
