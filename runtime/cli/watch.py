"""Watch an entity until it is in a terminal or resting state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from msgspec import Struct

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.cli.descriptors import fields_of
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import Method, System

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0


class NotFinal(Exception):
    """The deadline was exceeded before the entity was in a terminal state."""


class Watch(Struct, frozen=True):
    """The method that reads the state of a watched entity, and its lifecycle."""

    reader: Method
    lifecycle: Lifecycle
    field: str
    """The field of its answer with the state."""

    @property
    def ends(self) -> frozenset[int]:
        """The values of the field for entities in a terminal or failed state, or in a resting one.

        A value that is also shown for a state which an entity leaves of itself is no end.
        """
        lifecycle = self.lifecycle
        ended = lifecycle.terminal | lifecycle.failed
        moving = frozenset(lifecycle.states) - ended - lifecycle.resting
        return self._to_shown_states(ended) | (
            self._to_shown_states(lifecycle.resting) - self._to_shown_states(moving)
        )

    def has_failed(self, answer: Message) -> bool:
        """Whether an answer shows a failed state."""
        return getattr(answer, self.field) in self._to_shown_states(self.lifecycle.failed)

    def _to_shown_states(self, states: frozenset[int]) -> frozenset[int]:
        shown = self.lifecycle.public_status
        return frozenset(shown.get(state, state) for state in states)


def find_watch(system: System, method: Method, callable_methods: list[Method]) -> Watch | None:
    """Find how the entity of a method's answer can be watched; None if it cannot.

    It can if the method reads the state itself, or creates the entity: then its answer has a key that its
    request does not have.
    """
    for lifecycle in system.lifecycles.values():
        reader = next((each for each in callable_methods if _find_status_field(each, lifecycle)), None)
        makes = _has_field(method.response, lifecycle.key) and not _has_field(method.request, lifecycle.key)
        if reader is not None and (method is reader or makes):
            return Watch(reader, lifecycle, _find_status_field(reader, lifecycle))
    return None


async def wait_until_final(
    watch: Watch, key: str, read: Callable[[Any, Call], Awaitable[Any]], call: Call
) -> Message:
    """Poll the state until it is terminal, and show it on a terminal.

    The deadline may be exceeded between two polls or within one; the error names the last state either way.
    """
    from rich.console import Console

    console = Console(stderr=True)
    request = watch.reader.request(**{watch.lifecycle.key: key})
    pause, seen = _FIRST_PAUSE, "may go on"
    with console.status(f"{watch.lifecycle.entity} {key}") as status:
        while True:
            try:
                answer: Message = await read(request, call)
            except Failure as failure:
                if failure.grpc != "DEADLINE_EXCEEDED" or not call.expired:
                    raise
                raise NotFinal(_format_not_final(watch, key, seen)) from failure
            state = getattr(answer, watch.field)
            if state in watch.ends:
                return answer
            field = next(each for each in fields_of(answer) if each.name == watch.field)
            name = _enum_names(field).get(state, str(state))
            status.update(f"{watch.lifecycle.entity} {key}: {name}")
            remaining, seen = call.remaining(), f"is still {name}"
            if remaining is not None and remaining <= pause:
                raise NotFinal(_format_not_final(watch, key, seen))
            await call.world.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)


def _format_not_final(watch: Watch, key: str, seen: str) -> str:
    return f"{watch.lifecycle.entity} {key} {seen}, and the time is over."


def _find_status_field(method: Method, lifecycle: Lifecycle) -> str:
    """Find the field of an answer with the state of the requested entity; empty if there is none."""
    if not _has_field(method.request, lifecycle.key):
        return ""
    if _has_field(method.response, lifecycle.status):
        return lifecycle.status
    shown = set(lifecycle.public_status.values())
    fields = [each for each in fields_of(method.response) if not each.is_repeated]
    matching = [each.name for each in fields if shown and shown <= set(_enum_names(each))]
    return matching[0] if len(matching) == 1 else ""


def _enum_names(field: FieldDescriptor) -> dict[int, str]:
    """Return the value names of an enum field; empty for another field."""
    return {each.number: each.name for each in field.enum_type.values} if field.enum_type else {}


def _has_field(message: type[Message], field: str) -> bool:
    found = message.DESCRIPTOR.fields_by_name.get(field)
    return found is not None and not found.is_repeated
