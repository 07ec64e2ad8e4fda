"""When a change applies: who drives it in which way, and all that is checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.redis.field_values import Reading
from codegen.emit.redis.redis_entity import SETTLED, RedisEntity, owned
from codegen.emit.redis.script_arguments import Layout, quoted
from codegen.language.lifecycle import Due, Shift, Transition

Check = tuple[str, str]
"""A condition under which a change does not apply, and what is answered then."""


def ways(entity: RedisEntity, edge: Transition | Shift) -> list[str]:
    """The ways to drive a change: as the holder of a lease, by the clock, or as anybody who may."""
    found = []
    lease, claim = entity.lease, entity.claim
    holders = set(claim[1].by) if claim and leaves_lease(entity, edge) else set()
    if lease and (holders & set(edge.by) or (isinstance(edge, Shift) and edge.fenced)):
        found.append("held")
    clocks = set()
    for due in dues(edge):
        found.append("holder" if due.holder_in else "due")
        clocks.add(due.by)
    if set(edge.by) - holders - clocks and not (isinstance(edge, Shift) and edge.fenced):
        found.append("plain")
    return found


def dues(edge: Transition | Shift) -> list[Due]:
    """The clocks that drive a change."""
    return [due for due in (edge.due, getattr(edge, "also_due", None)) if due]


def leaves_lease(entity: RedisEntity, edge: Transition | Shift) -> bool:
    """Whether a change is one of the holder's, where its state has one."""
    lease = entity.lease
    return bool(lease and isinstance(edge, Transition) and edge.from_ == lease.state)


def checks(
    entity: RedisEntity,
    layout: Layout,
    was: Reading,
    name: str,
    edge: Transition | Shift,
    held: str | None = None,
) -> Iterator[Check]:
    """Everything that must not be the case, in the order in which it is looked at."""
    status, found = was(entity.status), ways(entity, edge)
    refused = " and ".join(f"way ~= {quoted(way)}" for way in found)
    yield refused or "true", "WAY"
    yield "seen[hash]", f"AGAIN, {status}"
    yield f"not {status}", "NONE"
    states = (edge.from_,) if isinstance(edge, Transition) else edge.in_
    elsewhere = " and ".join(f"{status} ~= {entity.state(state)}" for state in states)
    lease = entity.lease
    if "held" in found and lease:
        owner, fence = layout.each_argument(f"believed.{lease.owner}"), layout.each_argument("fence")
        same_lease = f"{was(lease.fence)} == {fence}"
        if isinstance(edge, Transition):
            mark = f"'{name} ' .. {owner} .. ' ' .. {fence}"
            yield f"way == 'held' and {same_lease} and {was(SETTLED)} == {mark}", f"SAME, {status}"
        mine = f"{elsewhere} or {was(lease.owner)} ~= {owner} or {was(lease.fence)} ~= {fence}"
        yield f"way == 'held' and ({mine})", f"LOST, {status}"
    yield elsewhere, f"STATE, {status}"
    if isinstance(edge, Shift):
        for field, value in edge.where.items():
            yield f"{was(field)} ~= {entity.literal(field, value)}", f"STATE, {status}"
    else:
        for flag in edge.when:
            yield f"{was(flag)} ~= 'true'", f"STATE, {status}"
    for due in dues(edge):
        yield from _not_due(entity, layout, was, due)
    for argument, local in layout.each_arguments.items():
        kind, _, field = argument.partition(".")
        if kind == "believed":
            yield f"{local} ~= ({was(field)} or '')", f"AGAIN, {status}"
    if held:
        yield f"redis.call('SCARD', {held}) > 0", f"HOLDS, {status}, redis.call('SCARD', {held})"


def _not_due(entity: RedisEntity, layout: Layout, was: Reading, due: Due) -> Iterator[Check]:
    status = was(entity.status)
    if due.at is not None:
        after = f" + {layout.argument(due.after)} * 1000000" if due.after else ""
        at = was(due.at)
        yield f"way == 'due' and not ({at} and tonumber({at}){after} <= now)", f"EARLY, {status}"
    lease = entity.lease
    if due.holder_in is not None and lease and lease.holder:
        other = RedisEntity(
            entity.spec, lease.holder.entity, entity.spec.lifecycle.entities[lease.holder.entity]
        )
        layout.each_argument(f"believed.{lease.owner}")
        key = layout.each_key("holder", owned(other.kept.hash, lease.owner))
        state = f"redis.call('HGET', {key}, {quoted(other.status)})"
        yield (
            f"way == 'holder' and ({state} or {other.state(due.holder_in)}) ~= {other.state(due.holder_in)}",
            (f"EARLY, {status}"),
        )
