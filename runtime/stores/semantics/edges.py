"""Edges: which one is meant, whether it may be taken, and the record after it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from runtime.model.lifecycles import Amount, Backoff, DeadLetter, Take, Transition, Update
from runtime.stores.semantics.leases import lease_writes
from runtime.stores.semantics.rules import Change, Rules, to_microseconds
from runtime.stores.store import Unstorable
from runtime.world import World

LONGEST_WAIT_S = 10 * 365 * 86400.0
_LARGEST_POWER = 1024.0


class EdgeStep(NamedTuple):
    """One edge, and the record after it."""

    edge: Transition
    record: Any


class Taken(NamedTuple):
    """The record after an edge, and the edges that were taken: two where the entity was given up."""

    record: Any
    edges: tuple[Change, ...]


# Which edge.


def edge_between(rules: Rules, source: int, target: int, actor: str) -> Transition | None:
    """Return the edge between two states; one by name only to an actor that may not take the other."""
    edge = rules.lifecycle.edges.get((source, target))
    if edge is not None and actor in edge.actors:
        return edge
    by_name = rules.lifecycle.by_name
    named = (each for each in by_name if source in each.sources and each.target == target)
    return next((each for each in named if each.by_name and actor in each.actors), edge)


def sources(change: Change) -> frozenset[int]:
    """Return the states that a change can be made in."""
    return change.sources if isinstance(change, Transition) else change.states


# May it be taken.


def fits(change: Change, record: Any) -> bool:
    """Whether a record is as a change wants it beside its state: `when` and `where`."""
    flags = change.when if isinstance(change, Transition) else ()
    if flags and not all(getattr(record, flag) for flag in flags):
        return False
    return not change.where or all(getattr(record, name) == value for name, value in change.where.items())


def applies(rules: Rules, change: Change, record: Any) -> bool:
    """Whether a record is in the state of a change and as it wants it."""
    state = rules.state(record)
    if isinstance(change, Transition):
        if state != change.source and state not in change.others:
            return False
    elif state not in change.states:
        return False
    return fits(change, record)


def needs_proof(rules: Rules, change: Change, actor: str) -> bool:
    """Whether an actor needs the proof of a lease: for what the owner does while it goes on."""
    if isinstance(change, Update):
        return change.fenced
    lease, entering = rules.lease, rules.entering
    return bool(lease and entering and lease.state in change.sources and actor in entering.actors)


def is_of_lease(rules: Rules, change: Change, record: Any) -> bool:
    """Whether a change of a record is one of its lease, so that a proof that is given is compared."""
    if rules.lease is None or rules.lease.state not in sources(change):
        return False
    return isinstance(change, Update) or bool(rules.state(record) == rules.lease.state)


def is_of_clock(rules: Rules, change: Change, actor: str) -> bool:
    """Whether an actor may make a change only when it is due: out of a lease that is not its own."""
    if not any(due.by == actor for due in change.dues):
        return False
    if isinstance(change, Update):
        return True
    return rules.lease is not None and rules.lease.state in change.sources


def only_ends_failures(rules: Rules, change: Change, actor: str) -> bool:
    """Whether an actor takes an edge only with the failure that it ends: it drives both, and no clock."""
    if not isinstance(change, Transition):
        return False
    edges = rules.edges.values()
    ends = [each for each in edges if each.dead_letter and each.dead_letter.transition == change.name]
    failing = [each for each in ends if each.target in change.sources]
    if not any(actor in each.actors for each in failing):
        return False
    instead = [due for each in ends if not each.sources.isdisjoint(change.sources) for due in each.dues]
    return all(due.by != actor for due in instead)


# What follows: giving up.


def is_exhausted(rules: Rules, end: DeadLetter, record: Any, *, is_counted: bool) -> bool:
    """Whether an entity has failed too often; `is_counted` says that the last failure is in the count."""
    failures = rules.number(record, end.count) - (rules.number(record, end.less) if end.less else 0)
    limit = rules.number(record, end.limit)
    return failures > limit if is_counted else failures >= limit


def take_edge(
    rules: Rules,
    edge: Transition,
    record: Any,
    given: Mapping[str, Any],
    now: int,
    world: World,
    *,
    owner: str = "",
    is_final: bool = False,
) -> Taken:
    """Return the record after an edge, or after the one that ends it: in its place, or right behind it."""
    steps = take_steps(rules, edge, record, given, now, world, owner=owner, is_final=is_final)
    return Taken(steps[-1].record, tuple(each.edge for each in steps))


def take_steps(
    rules: Rules,
    edge: Transition,
    record: Any,
    given: Mapping[str, Any],
    now: int,
    world: World,
    *,
    owner: str = "",
    is_final: bool = False,
) -> tuple[EdgeStep, ...]:
    """Return each edge that is taken, with the record after it."""
    ending, edge = edge.dead_letter, rules.taken_from(edge, rules.state(record))
    if ending is None:
        return (EdgeStep(edge, after_edge(rules, edge, record, given, now, world, owner)),)
    end = rules.edges[ending.transition]
    if edge.source in end.sources:
        is_counted = edge.increment != ending.count
        if is_final or is_exhausted(rules, ending, record, is_counted=is_counted):
            edge = rules.taken_from(end, edge.source)
        return (EdgeStep(edge, after_edge(rules, edge, record, given, now, world, owner)),)
    first = EdgeStep(edge, after_edge(rules, edge, record, given, now, world, owner))
    if is_final or is_exhausted(rules, ending, first.record, is_counted=True):
        end = rules.taken_from(end, edge.target)
        return (first, EdgeStep(end, after_edge(rules, end, first.record, given, now, world, owner)))
    return (first,)


# The record after it.


def after_edge(
    rules: Rules,
    edge: Transition,
    record: Any,
    given: Mapping[str, Any],
    now: int,
    world: World,
    owner: str = "",
) -> Any:
    """Return the record after an edge. Of two words that write one field the later here counts."""
    now = rules.moment_after(record, now)
    made: dict[str, Any] = {rules.lifecycle.status: edge.target}
    if rules.lease is not None:
        lease_writes(rules, rules.lease, edge, record, owner, now, world, made)
    if edge.increment is not None:
        made[edge.increment] = count(record, edge.increment)
    if rules.waits:
        _end_waits(rules, edge, now, made)
    if edge.backoff is not None:
        made[edge.backoff.until] = wait_until(rules, edge, edge.backoff, record, now, world)
    for name in edge.stamps:
        made[name] = rules.time_value(name, now)
    if edge.sets:
        made.update(edge.sets)
    if edge.copy:
        made.update({name: getattr(record, other) for name, other in edge.copy.items()})
    if edge.from_request:
        for name, take in edge.from_request.items():
            made[name] = take_value(rules, name, take, record, given)
    if edge.multiply:
        made.update({name: grow(rules, edge, name, record) for name in edge.multiply})
    if edge.clear:
        made.update({name: rules.unset(name) for name in edge.clear})
    return replace(record, **made)


def after_update(rules: Rules, update: Update, record: Any, given: Mapping[str, Any], now: int) -> Any:
    """Return the record after a change that leaves its state."""
    now = rules.moment_after(record, now)
    made: dict[str, Any] = {name: rules.time_value(name, now) for name in update.stamps}
    made.update(update.sets)
    for name, take in update.from_request.items():
        made[name] = take_value(rules, name, take, record, given)
    for name in update.clear:
        made[name] = rules.unset(name)
    return replace(record, **made)


def count(record: Any, name: str) -> int:
    """`increment`: one more than before."""
    return (getattr(record, name) or 0) + 1


def grow(rules: Rules, edge: Transition, name: str, record: Any) -> int:
    """`multiply`: so many times as much, rounded up, to at most what the variable says."""
    growth = edge.multiply[name]
    grown = math.ceil((getattr(record, name) or 0) * growth.times)
    return int(min(grown, float(rules.values[growth.max])))


def take_value(rules: Rules, name: str, take: Take, record: Any, given: Mapping[str, Any]) -> Any:
    """`from_request`: what the request says, or its default; with `keep_first`, what there is."""
    if take.keep_first and not rules.is_unset(name, kept := getattr(record, name)):
        return kept
    return given_value(rules, name, take, given)


def given_value(rules: Rules, name: str, take: Take, given: Mapping[str, Any]) -> Any:
    """Return what the request says for a field, typed as it is; the default, or unset, for an empty text."""
    value = given.get(take.source)
    if value is None or value == "":
        value = take.default or None
    return rules.unset(name) if value is None else _typed(rules, name, value)


def wait_until(rules: Rules, edge: Transition, backoff: Backoff, record: Any, now: int, world: World) -> Any:
    """`backoff`: the end of the backoff; unset where there is none and an index holds back by the field."""
    wait = to_microseconds(backoff_s(rules, edge, backoff, record, world))
    if wait <= 0 and backoff.until == rules.held_back_by:
        return rules.unset(backoff.until)
    return rules.time_value(backoff.until, now + wait)


def backoff_s(rules: Rules, edge: Transition, backoff: Backoff, record: Any, world: World) -> float:
    """Return the seconds of a backoff: as its kind has it, with jitter, to the most at most."""
    base = _seconds(rules, record, backoff.base)
    most = LONGEST_WAIT_S if backoff.max is None else _seconds(rules, record, backoff.max)
    try:
        wait = min(base * _growth(rules, edge, backoff, record), most)
    except OverflowError:
        wait = most
    if backoff.jitter and (jitter := rules.number(record, backoff.jitter)):
        wait = min(wait * world.uniform(1 - jitter, 1 + jitter), most)
    return min(max(0.0, wait), LONGEST_WAIT_S)


def _growth(rules: Rules, edge: Transition, backoff: Backoff, record: Any) -> float:
    """`kind`: how many times as long as `base` a wait is; raises OverflowError where no number says it."""
    if backoff.kind == "constant" or backoff.count is None:
        return 1.0
    failures: int = getattr(record, backoff.count) or 0
    if edge.increment != backoff.count:
        failures = max(failures - 1, 0)
    if backoff.kind == "linear":
        return failures + 1.0
    factor = rules.number(record, backoff.times) if backoff.times is not None else 2.0
    grown: float = factor ** min(float(failures), _LARGEST_POWER)
    return grown


def _end_waits(rules: Rules, edge: Transition, now: int, made: dict[str, Any]) -> None:
    """End the waits of other edges: at once in the state of waiting, and with no trace in any other.

    A time that orders claims stays: an entity is as old as before.
    """
    for until, state in rules.waits.items():
        if until == rules.not_before or (edge.backoff is not None and edge.backoff.until == until):
            continue
        is_over = edge.target == state and until != rules.held_back_by
        made[until] = rules.time_value(until, now) if is_over else rules.unset(until)


def _seconds(rules: Rules, record: Any, path: Amount) -> float:
    """Seconds of a number or of a variable, or milliseconds of the record."""
    number = rules.number(record, path)
    return number / 1000 if isinstance(path, str) and path.islower() else number


def _typed(rules: Rules, name: str, value: Any) -> Any:
    """Return a text as the field has it, where the field is no text."""
    types = rules.types_of(name)
    if type(value) is not str or str in types:
        return value
    if bool in types:
        return value == "true"
    try:
        if int in types:
            return int(value)
        return float(value) if float in types else value
    except ValueError:
        raise Unstorable(f"{name} of a {rules.entity} is a number") from None
