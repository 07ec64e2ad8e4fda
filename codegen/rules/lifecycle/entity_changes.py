"""What several rules of lifecycle.yaml look at: all that changes an entity, and what the clock drives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codegen.language.lifecycle import Due, Entity, Shift, Transition
from codegen.source.yaml_reader import Path


class Clocked(NamedTuple):
    """Something that the clock drives: where that is said, what it is, who may do it, and in which states."""

    path: Path
    name: str
    by: tuple[str, ...]
    states: tuple[str, ...]
    due: Due


def changes(entity: Entity) -> Iterator[tuple[Path, str, Transition | Shift]]:
    """Every transition and every shift with its path inside the entity and its name."""
    yield from ((("transitions", name), name, row) for name, row in entity.transitions.items())
    yield from ((("shifts", name), name, row) for name, row in entity.shifts.items())


def clocked(entity: Entity) -> Iterator[Clocked]:
    """Every clock of an entity."""
    for name, edge in entity.transitions.items():
        for word, due in (("due", edge.due), ("also_due", edge.also_due)):
            if due:
                yield Clocked(("transitions", name, word), name, edge.by, (edge.from_,), due)
    for name, shift in entity.shifts.items():
        if shift.due:
            yield Clocked(("shifts", name, "due"), name, shift.by, shift.in_, shift.due)
    if entity.delete and entity.delete.due:
        yield Clocked(("delete", "due"), "delete", entity.delete.by, entity.delete.from_, entity.delete.due)


def appliers(entity: Entity, actors: tuple[str, ...]) -> tuple[str, ...]:
    """The components that apply what some do: themselves, or the holder for those without the store."""
    if not (entity.in_redis or entity.in_sqlite or entity.in_s3):
        return actors
    holders = (entity.held_by, *entity.shared_with)
    return tuple(dict.fromkeys(each if each in holders else entity.held_by for each in actors))


def is_variable(name: str) -> bool:
    """Whether a number is in a variable; a name in lower case is a field of the record."""
    return name.isupper()
