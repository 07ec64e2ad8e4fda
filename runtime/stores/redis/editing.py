"""Fields that no transition touches, and entities that are taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic

from runtime.call.context import Call
from runtime.model.lifecycles import Shift, Transition
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.moving import Asked, Moving
from runtime.stores.redis.scripts import PAIRS
from runtime.stores.store import GuardBreach, Moved, NoSuchEntity, Record


class Editing(Generic[Record]):
    """Changes of one kind of entity beside its lifecycle, and the end of one."""

    def __init__(self, entities: Entities[Record], moving: Moving[Record]) -> None:
        self._entities = entities
        self._lifecycle = entities.lifecycle
        self._moving = moving

    async def update(self, key: str, changes: Mapping[str, Any]) -> None:
        """Puts fields that nothing goes by."""
        guarded = self._guarded()
        if wrong := sorted(guarded.intersection(changes)):
            raise GuardBreach(
                f"{', '.join(wrong)} of a {self._lifecycle.entity} changes by a transition alone"
            )
        pairs: list[Any] = []
        for name, value in changes.items():
            is_set = value is not None
            pairs += [name, "1" if is_set else "", self._entities.rows.written(name, value) if is_set else ""]
        work = self._entities.run("update", {}, [{"key": key, PAIRS: pairs}])
        ((answer, *_),) = await self._entities.answer(work)
        if answer != "done":
            raise NoSuchEntity(key)

    async def delete(self, key: str, expected: int, call: Call) -> Moved:
        """Takes an entity back, if it is in a state for that and nothing is leased to it."""
        lifecycle, entities = self._lifecycle, self._entities
        if call.caller not in lifecycle.deleters:
            allowed = ", ".join(sorted(lifecycle.deleters)) or "nobody"
            raise entities.denied(call, f"only {allowed} may delete a {lifecycle.entity}")
        if expected not in lifecycle.deletable:
            raise GuardBreach(f"no {lifecycle.entity} is deleted that is {lifecycle.states[expected]}")
        answer = await entities.answer(self._moving.one("delete", Asked(key, {}), "plain", call.caller))
        if answer[0] == "none":
            raise NoSuchEntity(key)
        if answer[0] == "holds":
            raise entities.condition("still_held", entity=lifecycle.entity, key=key, held=answer[2])
        if answer[0] != "done":
            return Moved(False, entities.state_numbers[answer[1]])
        entities.metrics.count_transition(lifecycle.entity, "delete", call.caller)
        known = {entities.kept.trace: answer[2]} if entities.kept.trace and answer[2] else {}
        entities.tell(call, "delete", expected, None, [key], lambda _: known)
        return Moved(True, expected)

    def _guarded(self) -> set[str]:
        """Fields that only creation, transitions and shifts write, or by which keys are named."""
        lifecycle, kept = self._lifecycle, self._entities.kept
        found = {lifecycle.key, lifecycle.status, kept.sequence, *lifecycle.creation_stamps, *kept.unique}
        changes: list[Transition | Shift] = [*lifecycle.edges.values(), *lifecycle.shifts.values()]
        for change in changes:
            found |= {*change.stamps, *change.sets, *change.takes, *change.clears}
            if isinstance(change, Transition):
                found |= {*change.copies, *change.grows, *([change.counts] if change.counts else [])}
        if lease := lifecycle.lease:
            found |= {lease.owner, lease.expires, lease.fence}
        for index in kept.indexes.values():
            named = (index.score, index.only_if, index.only_unless, index.parts.by if index.parts else None)
            found |= {name for name in named if name}
            found |= {name for name in self._entities.rows.names if f"{{{name}}}" in index.key}
        return found
