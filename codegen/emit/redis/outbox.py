"""What a change tells beside the entity itself: the outbox, counts, and what was taken from a holder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codegen.emit.redis.lua_metrics import Counting, Label
from codegen.emit.redis.redis_entity import SETTLED, owned
from codegen.emit.redis.script_arguments import identifier, quoted
from codegen.language.lifecycle import Transition

if TYPE_CHECKING:
    from codegen.emit.redis.change import Change


def counts(change: Change, counting: Counting) -> Iterator[str]:
    metrics = change.entity.kept.metrics
    if metrics is None:
        return
    change.layout.key("metrics", metrics)
    name = " .. '|' .. ".join(
        [quoted(counting.metric), *(_label(change, label) for label in counting.labels)]
    )
    name = name.replace("' .. '", "")
    if counting.type == "histogram" and counting.since:
        bounds = change.layout.constant(f"{counting.metric}_bounds", f"{{{', '.join(counting.bounds)}}}")
        since = change.now(counting.since).text
        yield f"observe({name}, now - ({since} or now), {bounds})"
    elif counting.type == "window":
        yield f"recently({name})"
    else:
        yield f"count({name}, 1)"


def _label(change: Change, label: Label) -> str:
    if label.text is not None:
        return quoted(label.text)
    if label.given is not None:
        return change.given(label.given)
    value = change.now(label.field or "")
    return f"({value.text} or '')" if value.maybe else value.text


def written_down(change: Change, target: str) -> Iterator[str]:
    """Tells the outbox of a change of state, together with others of its kind in the script."""
    outbox, entity = change.entity.kept.outbox, change.entity
    if outbox is None:
        return
    change.layout.key("outbox", outbox.stream)
    change.layout.argument("actor")
    told = {"key": change.key, "sequence": "sequence"}
    if lease := entity.lease:
        taken = target == lease.state
        told["owner"] = "owner" if taken else f"{change.was(lease.owner)} or ''"
        told["fence"] = "fence" if taken else f"{change.was(lease.fence)} or '0'"
    reason = change.edge.reason if isinstance(change.edge, Transition) else None
    if reason:
        told["reason"] = change.given(reason)
    if entity.kept.trace:
        told["trace"] = f"{change.was(entity.kept.trace)} or ''"
    if target in entity.ended:
        told["record"] = "redis.call('HGETALL', hash)"
        if change.whole:
            yield from brought_up_to_date(change)
            told["record"] = "was"
    columns = quoted(json.dumps([*told], separators=(",", ":")))
    states = f"from = {entity.state(change.sources[0])}, to = {entity.state(target)}"
    kind = change.layout.constant(identifier(f"to_{target.lower()}"), f"{{{states}, columns = {columns}}}")
    yield f"tell({kind}, {{{', '.join(told.values())}}})"


def brought_up_to_date(change: Change) -> Iterator[str]:
    """Makes what the script has read what it has written."""
    yield f"was[{quoted(change.entity.kept.sequence)}] = sequence"
    for name, value in change.after.items():
        yield f"was[{quoted(name)}] = {value.text}"
    if change.is_held:
        yield f"was[{quoted(SETTLED)}] = mark"


def taken_away(change: Change) -> Iterator[str]:
    """Whatever somebody else takes from a holder, the holder is told when it asks."""
    lease = change.entity.lease
    if change.only_held or not (lease and lease.holder and lease.holder.taken):
        return
    if lease.state not in change.sources or change.target is None:
        return
    change.believed(lease.owner)
    taken = change.layout.each_key("taken", owned(lease.holder.taken, lease.owner))
    if change.is_held:
        yield "if way ~= 'held' then"
    yield f"redis.call('SADD', {taken}, {change.key})"
    if expires := change.entity.kept.expires:
        yield f"redis.call('PEXPIRE', {taken}, math.ceil({change.layout.argument(expires)} * 1000))"
    if change.is_held:
        yield "end"
