"""Changes of an entity, for several rules of lifecycle.yaml: transitions, updates, due transitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from codegen.language.lifecycle import Due, Entity, Transition, Update
from codegen.source.yaml_reader import Path


class DueChange(NamedTuple):
    """A change that the clock drives: its path, its name, the actors and the source states."""

    path: Path
    name: str
    by: tuple[str, ...]
    states: tuple[str, ...]
    due: Due


def iter_changes(entity: Entity) -> Iterator[tuple[Path, str, Transition | Update]]:
    """Iterate over all transitions and updates, each with its path inside the entity and its name."""
    yield from ((("transitions", name), name, row) for name, row in entity.transitions.items())
    yield from ((("updates", name), name, row) for name, row in entity.updates.items())


def iter_dues(row: Transition | Update) -> Iterator[tuple[Path, Due]]:
    """Iterate over the clocks of a change, each with its path inside the change."""
    for place, due in enumerate(row.dues):
        yield ("due", place) if isinstance(row.due, tuple) else ("due",), due


def iter_due_changes(entity: Entity) -> Iterator[DueChange]:
    """Iterate over all changes of an entity that the clock drives."""
    for name, edge in entity.transitions.items():
        for path, due in iter_dues(edge):
            yield DueChange(("transitions", name, *path), name, edge.by, edge.sources, due)
    for name, update in entity.updates.items():
        for path, due in iter_dues(update):
            yield DueChange(("updates", name, *path), name, update.by, update.in_, due)
    if entity.delete and entity.delete.due:
        yield DueChange(("delete", "due"), "delete", entity.delete.by, entity.delete.from_, entity.delete.due)


def find_appliers(entity: Entity, actors: tuple[str, ...]) -> tuple[str, ...]:
    """Find who applies what actors do: they themselves, or the holder for one without the store."""
    holders = (entity.held_by, *entity.shared_with)
    return tuple(dict.fromkeys(each if each in holders else entity.held_by for each in actors))


def is_variable(source: str | float | None) -> TypeGuard[str]:
    """Whether a number is in a variable; a name in lower case is a field of the record."""
    return isinstance(source, str) and source.isupper()
