"""A claim request of an owner, and the function that leases an entity to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NamedTuple

from runtime.call.context import Call
from runtime.stores.s3.codec import Snapshot
from runtime.stores.semantics.leases import equals, is_able, is_paused, needs
from runtime.stores.semantics.rules import Rules


class ClaimRequest(NamedTuple):
    """The owner, capabilities and filters of one claim."""

    owner: str
    offered: frozenset[str] | None
    """Capabilities of the owner; None for all."""
    where: Mapping[str, object]
    paused: Collection[int]
    call: Call

    def is_able(self, rules: Rules, record: Any) -> bool:
        """Whether the owner has the capabilities that a record needs."""
        return is_able(needs(rules, record), self.offered)

    def fits(self, rules: Rules, record: Any) -> bool:
        """Whether a record matches the request: not paused, within the capabilities, and the filters."""
        is_served = not is_paused(rules, record, self.paused)
        return is_served and self.is_able(rules, record) and equals(record, self.where)


LeaseOut = Callable[[str, Snapshot[Any], ClaimRequest], Awaitable[Snapshot[Any] | None]]
"""Leases an entity that was just read to the owner; None where another owner was first."""
