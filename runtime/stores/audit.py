"""Audit of transitions: count and log the changes of an entity, the same for every store."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle
from runtime.observe import log as events
from runtime.observe.metrics import Metrics


class TransitionAudit:
    """Count and log the transitions of an entity. Payloads and errors of entities are never logged."""

    def __init__(self, lifecycle: Lifecycle, metrics: Metrics) -> None:
        self._lifecycle = lifecycle
        self._metrics = metrics

    def record_applied(
        self,
        call: Call,
        name: str,
        key: str,
        source: int | None,
        target: int | None,
        *,
        actor: str = "",
        known: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Record a transition that was applied; the actor is the caller unless another is given."""
        lifecycle = self._lifecycle
        self._metrics.count_transition(lifecycle.entity, name, actor or call.caller)
        if call.log.wants(events.TRANSITION):
            fields: dict[str, object] = {
                "entity": lifecycle.entity,
                "transition": name,
                lifecycle.key: key,
                "from_status": None if source is None else lifecycle.states[source],
                "to_status": None if target is None else lifecycle.states[target],
                **known,
            }
            if actor:
                fields["actor"] = actor
            call.tell(events.TRANSITION, f"{lifecycle.entity} {name}", **fields)

    def record_ignored(self, call: Call, key: str, source: int, target: int, current: int) -> None:
        """Record a transition that came too late: the entity is in another terminal state already."""
        lifecycle = self._lifecycle
        if current in lifecycle.terminal and target in lifecycle.terminal - {current}:
            call.tell(
                events.TERMINAL_WRITE_IGNORED,
                f"{lifecycle.entity} is {lifecycle.states[current]} already",
                **{
                    lifecycle.key: key,
                    "expected_status": lifecycle.states[source],
                    "current_status": lifecycle.states[current],
                },
            )
