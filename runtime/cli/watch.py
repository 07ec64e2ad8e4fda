"""Watching an entity until it is in a final state."""

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
    """An entity that was watched to the deadline and goes on."""


class Watch(Struct, frozen=True):
    """How an entity is watched: the method that reads its status, and its lifecycle."""

    reader: Method
    lifecycle: Lifecycle
    field: str
    """The field of its answer that tells the state."""

    @property
    def ends(self) -> frozenset[int]:
        """What the field says of an entity that is final, or has failed as far as it goes by itself."""
        return self._shown(self.lifecycle.terminal | self.lifecycle.failed)

    def has_failed(self, answer: Message) -> bool:
        """Whether an answer is about an entity that has ended and did not come to what was wanted."""
        return getattr(answer, self.field) in self._shown(self.lifecycle.failed)

    def _shown(self, states: frozenset[int]) -> frozenset[int]:
        shown = self.lifecycle.shown
        return frozenset(shown.get(state, state) for state in states)


def watch_for(system: System, method: Method, callable_methods: list[Method]) -> Watch | None:
    """How the entity that a method answers with can be watched, if it can.

    A method can be followed if it reads the status itself, or if it makes the entity: then its answer has a
    key that its request had not.
    """
    for lifecycle in system.lifecycles.values():
        reader = next((each for each in callable_methods if _status(each, lifecycle)), None)
        makes = _has(method.response, lifecycle.key) and not _has(method.request, lifecycle.key)
        if reader is not None and (method is reader or makes):
            return Watch(reader, lifecycle, _status(reader, lifecycle))
    return None


async def until_final(
    watch: Watch, key: str, read: Callable[[Any, Call], Awaitable[Any]], call: Call
) -> Message:
    """Reads the status again and again until it is final, and shows where it is on a terminal.

    The time may be over between two looks or in the middle of one; what goes on is named either way.
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
                raise NotFinal(_not_final(watch, key, seen)) from failure
            state = getattr(answer, watch.field)
            if state in watch.ends:
                return answer
            field = next(each for each in fields_of(answer) if each.name == watch.field)
            name = _names(field).get(state, str(state))
            status.update(f"{watch.lifecycle.entity} {key}: {name}")
            remaining, seen = call.remaining(), f"is still {name}"
            if remaining is not None and remaining <= pause:
                raise NotFinal(_not_final(watch, key, seen))
            await call.world.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)


def _not_final(watch: Watch, key: str, seen: str) -> str:
    return f"{watch.lifecycle.entity} {key} {seen}, and the time is over."


def _status(method: Method, lifecycle: Lifecycle) -> str:
    """The field of an answer that tells the state of the entity that was asked for; empty if none does."""
    if not _has(method.request, lifecycle.key):
        return ""
    if _has(method.response, lifecycle.status):
        return lifecycle.status
    shown = set(lifecycle.shown.values())
    fields = [each for each in fields_of(method.response) if not each.is_repeated]
    told = [each.name for each in fields if shown and shown <= set(_names(each))]
    return told[0] if len(told) == 1 else ""


def _names(field: FieldDescriptor) -> dict[int, str]:
    """The values of an enum field; nothing for another one."""
    return {each.number: each.name for each in field.enum_type.values} if field.enum_type else {}


def _has(message: type[Message], field: str) -> bool:
    found = message.DESCRIPTOR.fields_by_name.get(field)
    return found is not None and not found.is_repeated
