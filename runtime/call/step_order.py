"""Order of steps: the calls that an actor has to complete before it asks for a transition.

The callee of a transition cannot know what its caller did before, so this is kept where the caller is: in the
engine around its handler, which has made every one of those calls itself.
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
    """A channel that refuses a transition of this component before the calls that come first.

    It is the channel itself where no transition of the component comes after anything.
    """
    ordered = {
        name: [
            edge for edge in (*lifecycle.edges.values(), *lifecycle.by_name) if _is_ordered(edge, component)
        ]
        for name, lifecycle in system.lifecycles.items()
    }
    return OrderedChannel(system, component, channel, ordered) if any(ordered.values()) else channel


class OrderedChannel:
    """Notes which calls are completed, and checks them before a call that drives a transition."""

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
        """The method as a function that keeps to the order."""
        invoke, name = self._channel.bind(method, request, response), str(method)
        for entity, edges in self._ordered.items():
            lifecycle = self._system.lifecycles[entity]
            if driven := [edge for edge in edges if edge.via == name]:
                invoke = self._checked(invoke, method, lifecycle, driven)
            if any(name in edge.after for edge in edges):
                invoke = _noted(invoke, method, lifecycle)
        return invoke

    def _checked(
        self,
        invoke: Invoke[Request, Response],
        method: Method,
        lifecycle: Lifecycle,
        edges: Sequence[Transition],
    ) -> Invoke[Request, Response]:
        drive = method.drive

        async def checked(request: Any, call: Call) -> Any:
            subject = (lifecycle.entity, str(getattr(request, lifecycle.key)))
            done = call.steps.get(subject, [])
            for edge in edges:
                asked = drive is None or (edge.source, edge.target) == (
                    getattr(request, drive.source_field),
                    getattr(request, drive.target_field),
                )
                if asked and (missing := _first_missing(edge.after, done)) is not None:
                    self._refuse(method, edge, missing, subject[1], call)
            answer = await invoke(request, call)
            call.steps.pop(subject, None)
            return answer

        return checked

    def _refuse(self, method: Method, edge: Transition, missing: str, key: str, call: Call) -> None:
        problem = f"'{edge.name}' comes after {missing}, which was not completed for {key} in this call"
        deny: Callable[..., Condition] = self._system.roles["permission_denied"]
        denied = deny(caller=self._component, method=str(method), problem=problem)
        call.tell(events.CALL_DENIED, denied.message, method=str(method))
        # To the handler it looks as if the callee had refused it, as it would if it could know.
        raise type(denied).received(denied.message, method.service.rpartition(".")[2])


def _is_ordered(edge: Transition, component: str) -> bool:
    return bool(edge.after) and component in edge.actors


def _noted(
    invoke: Invoke[Request, Response], method: Method, lifecycle: Lifecycle
) -> Invoke[Request, Response]:
    """The method, whose completion is noted for the entity that its request or its answer names."""
    name, key, entity = str(method), lifecycle.key, lifecycle.entity
    is_asked = key in method.request.DESCRIPTOR.fields_by_name

    async def noted(request: Any, call: Call) -> Any:
        answer = await invoke(request, call)
        if subject := str(getattr(request if is_asked else answer, key)):
            call.steps.setdefault((entity, subject), []).append(name)
        return answer

    return noted


def _first_missing(after: Sequence[str], done: Sequence[str]) -> str | None:
    """The first call that is not among those that were completed, in the order that is wanted."""
    left = iter(done)
    return next((each for each in after if each not in left), None)
