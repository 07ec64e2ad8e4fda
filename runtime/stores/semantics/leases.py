"""Leases: who holds one, what a claim and its end write, and the order of claims."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from runtime.model.lifecycles import Index, Lease, Transition
from runtime.stores.semantics.rules import Rules, to_microseconds
from runtime.world import World

LOST, STALE = "lost", "stale"


# The proof.


def lease_problem(rules: Rules, record: Any, owner: str, fence: int, now: int) -> str | None:
    """Say what is wrong with the proof of a lease: `LOST`, `STALE` where only the fence differs, or None.

    A lease with an end is lost at that moment. One that goes by `renewed` goes on until an edge ends it.
    """
    lease = rules.lease
    if lease is None or rules.state(record) != lease.state:
        return LOST
    if owner and getattr(record, lease.owner) != owner:
        return LOST
    if fence and getattr(record, lease.fence) != fence:
        return STALE
    return LOST if owner and is_expired(rules, record, now) else None


def is_expired(rules: Rules, record: Any, now: int) -> bool:
    """Whether the end of a lease has come."""
    lease = rules.lease
    if lease is None or not lease.expires:
        return False
    ends = rules.moment_at(record, lease.expires)
    return ends is not None and ends <= now


# What a claim and its end write.


def lease_writes(
    rules: Rules,
    lease: Lease,
    edge: Transition,
    record: Any,
    owner: str,
    now: int,
    world: World,
    made: dict[str, Any],
) -> None:
    """Add what an edge writes because it takes a lease or leaves it."""
    if edge.target == lease.state and edge.source != lease.state:
        made[lease.owner] = owner
        made[lease.fence] = (getattr(record, lease.fence) or 0) + 1
        if lease.expires:
            made[lease.expires] = rules.time_value(lease.expires, lease_end(rules, lease, record, now))
        if lease.renewed:
            made[lease.renewed] = rules.time_value(lease.renewed, now)
        if lease.token:
            made[lease.token] = world.new_id()
    elif edge.source == lease.state and edge.target != lease.state:
        if lease.expires:
            made[lease.expires] = rules.unset(lease.expires)
        if lease.token:
            made[lease.token] = rules.unset(lease.token)
        if not (lease.keeps_owner and rules.entering and edge.target != rules.entering.source):
            made[lease.owner] = rules.unset(lease.owner)


def lease_end(rules: Rules, lease: Lease, record: Any, now: int, seconds: float | None = None) -> int:
    """Return the moment at which a lease ends that begins now."""
    return now + to_microseconds(rules.number(record, lease.seconds) if seconds is None else seconds)


def after_renewal(rules: Rules, lease: Lease, record: Any, now: int, seconds: float | None = None) -> Any:
    """Return the record whose lease begins anew: its end is later, or it was renewed now."""
    made: dict[str, Any] = {}
    if lease.expires:
        ends = lease_end(rules, lease, record, now, seconds)
        made[lease.expires] = rules.time_value(lease.expires, ends)
    if lease.renewed:
        moment = rules.moment_after(record, now)
        made[lease.renewed] = rules.time_value(lease.renewed, moment)
    return replace(record, **made)


# What may be claimed, and in which order.


def is_in_index(rules: Rules, index: Index, record: Any) -> bool:
    """Whether a record is in an index: by its state, and by `only_if` and `only_unless`."""
    if rules.state(record) not in index.states:
        return False
    if index.only_if is not None and getattr(record, index.only_if) is None:
        return False
    return index.only_unless is None or getattr(record, index.only_unless) is None


def is_free(rules: Rules, record: Any) -> bool:
    """Whether a record is there to be claimed, now or from a time on, by an owner that is able to."""
    lease, entering = rules.lease, rules.entering
    if lease is None or entering is None or rules.state(record) != entering.source:
        return False
    if rules.leased_index is not None and not is_in_index(rules, rules.leased_index, record):
        return False
    if claim_rank(rules, record) is None or not all(getattr(record, flag) for flag in entering.when):
        return False
    return all(getattr(record, name) == value for name, value in entering.where.items())


def free_at(rules: Rules, record: Any) -> int:
    """Return the moment from which on a record can be claimed that is free; 0 where it does not wait."""
    return (rules.moment_at(record, rules.not_before) or 0) if rules.not_before else 0


def claim_rank(rules: Rules, record: Any) -> int | None:
    """Return the place of a record's value in `claim_order`; None for a value that is never served."""
    lease = rules.lease
    if lease is None or rules.rank_field is None or not lease.claim_order:
        return 0
    value = getattr(record, rules.rank_field)
    return lease.claim_order.index(value) if value in lease.claim_order else None


def claim_age(rules: Rules, record: Any) -> int:
    """Return the time by which the oldest of a rank is claimed first."""
    return (rules.moment_at(record, rules.lease.oldest_by) or 0) if rules.lease else 0


def is_paused(rules: Rules, record: Any, paused: Collection[int]) -> bool:
    """Whether the value of a record is not served at present."""
    return bool(paused) and rules.rank_field is not None and getattr(record, rules.rank_field) in paused


def needs(rules: Rules, record: Any) -> frozenset[str]:
    """Return what an owner must be able to do for a record: all of `needs`, or the text of `only`."""
    lease = rules.lease
    if lease is None:
        return frozenset()
    if lease.holder is not None:
        return frozenset(getattr(record, lease.holder.needs))
    return frozenset((getattr(record, lease.only),)) if lease.only else frozenset()


def offers(rules: Rules, holder: Any | None, capabilities: Collection[str] | None) -> frozenset[str] | None:
    """Return what an owner is able to do; None for everything. What it asks for never widens that."""
    asked = None if capabilities is None else frozenset(capabilities)
    lease = rules.lease
    if lease is None or lease.holder is None:
        return asked if lease is not None and lease.only else None
    own = frozenset(getattr(holder, lease.holder.offers)) if holder is not None else frozenset[str]()
    return own if asked is None else own & asked


def is_able(needed: frozenset[str], offered: frozenset[str] | None) -> bool:
    """Whether what is needed is offered."""
    return offered is None or needed <= offered


def room(rules: Rules, holder: Any | None, holder_status: str, held: int, wanted: int) -> int:
    """Return how many more leases an owner may have: by its state and capacity, where it is an entity."""
    lease = rules.lease
    if lease is None or lease.holder is None:
        return wanted
    if holder is None or getattr(holder, holder_status) not in lease.holder.states:
        return 0
    capacity: int = getattr(holder, lease.holder.capacity)
    return max(0, min(wanted, capacity - held))


def equals(record: Any, where: Mapping[str, object]) -> bool:
    """Whether fields of a record are equal to something."""
    return all(getattr(record, name) == value for name, value in where.items())
