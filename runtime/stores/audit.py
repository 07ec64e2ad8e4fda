"""Counts and logs the changes of one kind of entity, whatever store has made them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle
from runtime.observe import log as events
from runtime.observe.metrics import Metrics


class Telling:
    """What the world outside learns of changes. What an entity carries or failed with is not for the log."""

    def __init__(self, lifecycle: Lifecycle, metrics: Metrics) -> None:
        self._lifecycle = lifecycle
        self._metrics = metrics

    def applied(
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
        """A change that was made; the actor is the caller unless another is named."""
        lifecycle = self._lifecycle
        self._metrics.transition(lifecycle.entity, name, actor or call.caller)
        if call.log.wants(events.TRANSITION):
            told: dict[str, object] = {
                "entity": lifecycle.entity,
                "transition": name,
                lifecycle.key: key,
                "from_status": None if source is None else lifecycle.states[source],
                "to_status": None if target is None else lifecycle.states[target],
                **known,
            }
            if actor:
                told["actor"] = actor
            call.tell(events.TRANSITION, f"{lifecycle.entity} {name}", **told)

    def ignored(self, call: Call, key: str, source: int, target: int, current: int) -> None:
        """A change that came too late: the entity has ended in another way."""
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
