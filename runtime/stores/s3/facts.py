"""What follows from a lifecycle for its entities in a bucket, whatever becomes of any of them."""

from __future__ import annotations

from typing import Any

from runtime.model.kept_in_s3 import KeptInS3
from runtime.model.lifecycles import Lifecycle, Shift, Transition


def fits(record: Any, edge: Transition | Shift) -> bool:
    """Whether a record is as an edge wants it, beside its state."""
    flags = edge.when if isinstance(edge, Transition) else ()
    return all(getattr(record, flag) for flag in flags) and all(
        getattr(record, name) == value for name, value in edge.where.items()
    )


def immutable(lifecycle: Lifecycle, kept: KeptInS3) -> frozenset[str]:
    """The fields that stay as they were when the entity was created."""
    touched = {lifecycle.key, lifecycle.status, kept.revision, *lifecycle.creation_stamps}
    for edge in (*lifecycle.edges.values(), *lifecycle.by_name):
        touched |= {*edge.stamps, *edge.sets, *edge.takes, *edge.copies, *edge.clears}
        touched |= {name for name in (edge.counts, edge.waits and edge.waits.until) if name}
    for shift in lifecycle.shifts.values():
        touched |= {*shift.stamps, *shift.sets, *shift.takes, *shift.clears}
    if (lease := lifecycle.lease) is not None:
        touched |= {lease.owner, lease.expires, lease.fence, lease.oldest_by, lease.token or ""}
    if kept.large:
        touched |= set(kept.large.refs.values())
    return frozenset(kept.shape.types.keys() - touched)


def defaults(lifecycle: Lifecycle, kept: KeptInS3) -> dict[str, Any]:
    """What each field is where it is unset: the default of the record, null for a map and for the key."""
    empty = kept.shape.made(**{lifecycle.key: None})
    return {
        name: None if kind.startswith("map<") else getattr(empty, name)
        for name, kind in kept.shape.types.items()
    }


def always_stamped(lifecycle: Lifecycle) -> frozenset[str]:
    """The times that every change sets: when an entity was last written."""
    found = frozenset(lifecycle.creation_stamps)
    edges: list[Transition | Shift] = [*lifecycle.edges.values(), *lifecycle.by_name]
    for each in (*edges, *lifecycle.shifts.values()):
        found &= frozenset(each.stamps)
    return found


def entering(lifecycle: Lifecycle) -> Transition:
    """The edge by which a lease is taken; any other where there are no leases."""
    edges = lifecycle.edges.values()
    state = lifecycle.lease.state if lifecycle.lease else None
    return next((each for each in edges if each.target == state), next(iter(edges), _NO_EDGE))


_NO_EDGE = Transition(name="", source=-1, target=-1, actors=frozenset(), via=None)
