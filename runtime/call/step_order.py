"""Step order: the calls that an actor has to complete before it drives a transition.

The callee of a transition cannot know what its caller did before, so the order is checked at the caller: in
the engine around its handler, which has made every one of those calls itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtime.call.conditions import Condition
from runtime.call.context import Call, Channel, Invoke, Request, Response
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import Method, System
from runtime.observe import log as events


def keep_step_order(system: System, component: str, channel: Channel) -> Channel:
    """Wrap a channel, to refuse a transition of this component before the calls that have to come first.

    Return the channel itself where no transition of the component has such calls.
    """
    ordered = {
        name: [edge for edge in lifecycle.transitions.values() if _is_ordered(edge, component)]
        for name, lifecycle in system.lifecycles.items()
    }
    return OrderedChannel(system, component, channel, ordered) if any(ordered.values()) else channel


class OrderedChannel:
    """A channel that records completed calls, and checks them before a call that drives a transition."""

    def __init__(
        self, system: System, component: str, channel: Channel, ordered: Mapping[str, Sequence[Transition]]
    ) -> None:
        self._system = system
        self._component = component
        self._channel = channel
        self._ordered = ordered

    def bind(
        self, method: Method, request: type[Request], response: type[Response], /
    ) -> Invoke[Request, Response]:
        """Bind a method to a function that checks the order."""
        invoke, name = self._channel.bind(method, request, response), str(method)
        for entity, edges in self._ordered.items():
            lifecycle = self._system.lifecycles[entity]
            if driven := [edge for edge in edges if edge.via == name]:
                invoke = self._check_order(invoke, method, lifecycle, driven)
            if any(name in edge.after for edge in edges):
                invoke = _record_step(invoke, method, lifecycle)
        return invoke

    def _check_order(
        self,
        invoke: Invoke[Request, Response],
        method: Method,
        lifecycle: Lifecycle,
        edges: Sequence[Transition],
    ) -> Invoke[Request, Response]:
        drive = method.drive

        async def invoke_checked(request: Any, call: Call) -> Any:
            subject = (lifecycle.entity, str(getattr(request, lifecycle.key)))
            done = call.steps.get(subject, [])
            for edge in edges:
                asked = drive is None or (
                    getattr(request, drive.source_field) in edge.sources
                    and getattr(request, drive.target_field) == edge.target
                )
                if asked and (missing := _first_missing(edge.after, done)) is not None:
                    self._refuse(method, edge, missing, subject[1], call)
            answer = await invoke(request, call)
            call.steps.pop(subject, None)
            return answer

        return invoke_checked

    def _refuse(self, method: Method, edge: Transition, missing: str, key: str, call: Call) -> None:
        problem = f"'{edge.name}' comes after {missing}, which was not completed for {key} in this call"
        deny: Callable[..., Condition] = self._system.roles["permission_denied"]
        denied = deny(caller=self._component, method=str(method), problem=problem)
        call.tell(events.CALL_DENIED, denied.message, method=str(method))
        # The handler gets what it would get if the callee had refused the call.
        raise type(denied).from_remote(denied.message, method.service.rpartition(".")[2])


def _is_ordered(edge: Transition, component: str) -> bool:
    return bool(edge.after) and component in edge.actors


def _record_step(
    invoke: Invoke[Request, Response], method: Method, lifecycle: Lifecycle
) -> Invoke[Request, Response]:
    """Wrap a method, to record its completion for the entity that its request or its response names."""
    name, key, entity = str(method), lifecycle.key, lifecycle.entity
    is_asked = key in method.request.DESCRIPTOR.fields_by_name

    async def invoke_recorded(request: Any, call: Call) -> Any:
        answer = await invoke(request, call)
        if subject := str(getattr(request if is_asked else answer, key)):
            call.steps.setdefault((entity, subject), []).append(name)
        return answer

    return invoke_recorded


def _first_missing(after: Sequence[str], done: Sequence[str]) -> str | None:
    """Return the first call that was not completed in the required order; None if all were."""
    left = iter(done)
    return next((each for each in after if each not in left), None)
