"""What an entity was created with: one text of its hash, beside which stands whatever was written later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.model.lifecycles import Lifecycle, Shift, Transition
from runtime.model.system import System
from runtime.stores.redis.scripts import decoded

GIVEN = ".given"
"""The field of a hash that has it."""


def is_packed(system: System, lifecycle: Lifecycle) -> bool:
    """Whether entities have such a text. The fields of those who hold leases are read by others."""
    leases = [each.lease for each in system.lifecycles.values() if each.lease]
    return all(lease.holder is None or lease.holder.entity != lifecycle.entity for lease in leases)


def kept_apart(lifecycle: Lifecycle) -> set[str]:
    """Fields that a change may take away, which therefore are never in the text."""
    found: set[str] = set()
    changes: list[Transition | Shift] = [*lifecycle.edges.values(), *lifecycle.shifts.values()]
    for change in changes:
        found |= {*change.clears, *change.takes}
        if isinstance(change, Transition) and change.waits:
            found.add(change.waits.until)
    if lifecycle.lease:
        found |= {lifecycle.lease.owner, lifecycle.lease.expires}
    return found


def unpacked(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a hash, with those in its text among them."""
    given = values.get(GIVEN)
    if given is None:
        return values
    found = {**decoded(given), **values}
    del found[GIVEN]
    return found
