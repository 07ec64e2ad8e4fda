"""The lifecycle that is measured on each engine, and its variants, each of which lacks one thing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bench.stores.removals import HISTORY, TRIGGERS
from runtime.model.lifecycles import Lifecycle, Transition

_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)
_WAITING, _TAKEN, _DONE = 1, 2, 3
CLIENT = "client"


class ChoreRecord(Struct, frozen=True, kw_only=True):
    """Something that is taken and put back."""

    key: str
    state: int = 0
    wanted: bool = False
    mode: int = 0
    made_at: datetime = _NEVER
    moved_at: datetime = _NEVER


def _edge(name: str, source: int, target: int) -> Transition:
    return Transition(
        name=name,
        source=source,
        target=target,
        actors=frozenset({CLIENT}),
        via=None,
        stamps=("moved_at",),
        when=("wanted",),
        where={"mode": 1},
    )


def _lifecycle(*edges: Transition) -> Lifecycle:
    return Lifecycle(
        entity="chore",
        holder="keeper",
        key="key",
        status="state",
        states={_WAITING: "WAITING", _TAKEN: "TAKEN", _DONE: "DONE"},
        initial=_WAITING,
        terminal=frozenset({_DONE}),
        creators=frozenset({CLIENT}),
        creation_stamps=("made_at", "moved_at"),
        listed_by="moved_at",
        retained_by=None,
        deletable=frozenset(),
        deleters=frozenset(),
        edges={(each.source, each.target): each for each in edges},
        record=ChoreRecord,
    )


STEPS = ("take", "put_back")
"""The edges that an entity takes in turns."""
WHOLE: Final = _lifecycle(
    _edge("take", _WAITING, _TAKEN), _edge("put_back", _TAKEN, _WAITING), _edge("finish", _TAKEN, _DONE)
)


def _without_guards(lifecycle: Lifecycle) -> Lifecycle:
    """Return a lifecycle whose edges have no conditions on the record."""
    edges = {ends: replace(each, when=(), where={}) for ends, each in lifecycle.edges.items()}
    return replace(lifecycle, edges=edges)


class Variant(NamedTuple):
    """A lifecycle, and what is removed from its store once that has been opened."""

    title: str
    lifecycle: Lifecycle
    remove: Callable[[Any], Awaitable[None]] | None = None


def list_variants(engine: str) -> list[Variant]:
    """List the variants of an engine; the first one has everything."""
    found = [
        Variant("a step", WHOLE),
        Variant("guard: `when` and `where`", _without_guards(WHOLE)),
        Variant("a line of history", WHOLE, HISTORY[engine]),
        Variant("index of the listing", replace(WHOLE, listed_by=None)),
    ]
    if engine in TRIGGERS:
        found.append(Variant("triggers for edges", WHOLE, TRIGGERS[engine]))
    return found
