"""Creation and its opposite: the first record, unique values, the ceiling, deletion, purge and retention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from runtime.model.lifecycles import Transition
from runtime.stores.semantics.edges import EdgeStep, applies, take_steps
from runtime.stores.semantics.rules import Change, Rules, to_microseconds
from runtime.stores.store import GuardBreach
from runtime.world import World


class Begun(NamedTuple):
    """A new entity: its first record, and the edges that its creator takes, each with the record after it."""

    created: Any
    steps: tuple[EdgeStep, ...]

    @property
    def record(self) -> Any:
        """The record in the end."""
        return self.steps[-1].record if self.steps else self.created

    @property
    def edges(self) -> tuple[Change, ...]:
        """The edges that were taken."""
        return tuple(each.edge for each in self.steps)


def begin(rules: Rules, record: Any, then: Sequence[Transition], now: int, world: World, owner: str) -> Begun:
    """Return a new entity after the edges that belong to its creation; raises where one does not apply."""
    made = Begun(created(rules, record, now), ())
    for edge in then:
        if not applies(rules, edge, made.record):
            raise GuardBreach(f"{edge.name} of a new {rules.entity} does not apply")
        more = take_steps(rules, edge, made.record, {}, now, world, owner=owner)
        made = Begun(made.created, (*made.steps, *more))
    return made


def created(rules: Rules, record: Any, now: int) -> Any:
    """Return the first record of an entity: fills, copies, initial state, stamps, and no lease."""
    lifecycle = rules.lifecycle
    made: dict[str, Any] = {}
    if lifecycle.defaults:
        made |= _filled(rules, record)
    if lifecycle.copy:
        for name, other in lifecycle.copy.items():
            made[name] = made[other] if other in made else getattr(record, other)
    made |= {name: rules.unset(name) for name in rules.unique if getattr(record, name) == ""}
    if rules.lease is not None:
        made |= _no_lease(rules)
        if rules.waits:
            made |= {name: rules.unset(name) for name in _over(rules, record, now)}
    made[lifecycle.status] = first_state(rules, record)
    if lifecycle.revision is not None:
        made[lifecycle.revision] = 1
    for name in lifecycle.creation_stamps:
        made[name] = rules.time_value(name, _creation_moment(rules, name, record, now))
    return replace(record, **made)


def first_state(rules: Rules, record: Any) -> int:
    """`to` of the creation: the state in which an entity begins, by the record of its creator."""
    state: int = rules.state(record)
    return state if state in rules.lifecycle.begins else rules.lifecycle.initial


def unique_values(rules: Rules, record: Any) -> dict[str, Any]:
    """Return the unique fields of a record that have a value; an empty text is none."""
    found = {name: getattr(record, name) for name in rules.unique}
    return {name: value for name, value in found.items() if value is not None and value != ""}


def unique_until(rules: Rules, name: str, now: int) -> int | None:
    """Return until when a unique value is remembered; None for as long as there is the entity."""
    seconds = rules.unique[name]
    return None if seconds is None else now + to_microseconds(float(rules.values[seconds]))


def read_ceiling(rules: Rules) -> int | None:
    """Return how many the index of the ceiling may hold; None where there is no limit."""
    ceiling = rules.lifecycle.ceiling
    return (int(rules.values[ceiling.max]) or None) if ceiling is not None else None


def is_deletable(rules: Rules, record: Any, expected: int) -> bool:
    """Whether an entity is in the expected state, and may be deleted in it."""
    return rules.state(record) == expected and expected in rules.lifecycle.deletable


def changed_at(rules: Rules, record: Any) -> int:
    """Return when an entity has last changed, by its stamps."""
    return max((rules.moment_at(record, name) or 0 for name in rules.stamps), default=0)


def is_purgeable(rules: Rules, record: Any, older_than_s: float, now: int) -> bool:
    """Whether an entity may be deleted and has not changed for longer than this."""
    is_old = changed_at(rules, record) < now - to_microseconds(older_than_s)
    return is_old and rules.state(record) in rules.lifecycle.deletable


def forgotten_at(rules: Rules, now: int) -> int | None:
    """Return when an entity is forgotten that ends now; None where time does not matter."""
    return None if rules.retained_s is None else now + to_microseconds(rules.retained_s)


def _filled(rules: Rules, record: Any) -> dict[str, Any]:
    """`defaults`: the variable of another field's value, for a field that was not given."""
    fills = rules.lifecycle.defaults.items()
    unset = {name: fill for name, fill in fills if getattr(record, name) is None}
    return {name: rules.values[fill.of[getattr(record, fill.by)]] for name, fill in unset.items()}


def _no_lease(rules: Rules) -> dict[str, Any]:
    lease = rules.lease
    assert lease is not None
    names = (lease.owner, lease.expires, lease.token)
    return {lease.fence: 0, **{name: rules.unset(name) for name in names if name}}


def _creation_moment(rules: Rules, name: str, record: Any, now: int) -> int:
    """A stamp is now; but the time before which nothing is claimed may lie ahead."""
    if name != rules.not_before:
        return now
    return max(now, rules.moment_at(record, name) or now)


def _over(rules: Rules, record: Any, now: int) -> list[str]:
    """The field that holds an entity back from claims, where the time in it has passed."""
    name = rules.held_back_by
    at = rules.moment_at(record, name) if name in rules.waits else None
    return [] if name is None or at is None or at > now else [name]
