"""The counters of changes of an entity, as in `metrics.yaml`: fields of one hash.

A field is `<metric>|<value of each label>`; a histogram goes on with `|le|<bound>` and `|sum`, a window with
the number of its slot. The functions are pure, so that scripts, tables and pages come from one answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from codegen.language.lifecycle import Entity
from codegen.language.metrics import Counted, Metric
from codegen.source.spec import Spec, field_enum


@dataclass(frozen=True, slots=True)
class Label:
    """The source of the value of a label: exactly one of the three is set."""

    text: str | None = None
    """The constant."""
    field: str | None = None
    """The record field, as it is after the change."""
    given: str | None = None
    """The request field of the change."""

    def format(self) -> str:
        """Format it as the tables of the engine have it."""
        if self.text is not None:
            return self.text
        return f"{{{self.field}}}" if self.field is not None else f"<{self.given}>"


def list_happenings(spec: Spec, metric: Metric) -> dict[str, tuple[str, ...]]:
    """List the changes that a metric counts, and of each the value of every label.

    A value is a word, `{field}` of the record as it is after the change, or `<name>` of what it is given.
    """
    if (counts := metric.counts) is None:
        return {}
    found = {}
    for each in counts.on:
        entity, happening = each.split(".")
        labels = [_label(spec, counts, entity, happening, label) for label in label_names(metric)]
        found[happening] = tuple(label.format() for label in labels)
    return found


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
        return entity.beginnings
    if happening in entity.transitions:
        return (entity.transitions[happening].to,)
    if happening in entity.updates:
        return tuple(entity.updates[happening].in_)
    return tuple(entity.delete.from_) if happening == "delete" and entity.delete else ()
