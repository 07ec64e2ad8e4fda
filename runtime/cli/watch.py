"""Watching an entity until it is in a final state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from rich.console import Console

from runtime.call import Call
from runtime.tables import Lifecycle, Method, System

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0


class NotFinal(Exception):
    """An entity that was watched to the deadline and goes on."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How an entity is watched: the method that reads its status, and its lifecycle."""

    reader: Method
    lifecycle: Lifecycle


def watch_for(system: System, method: Method, callable_methods: list[Method]) -> Watch | None:
    """How the entity that a method answers with can be watched, if it can.

    A method can be followed if it reads the status itself, or if it makes the entity: then its answer has a
    key that its request had not.
    """
    for lifecycle in system.lifecycles.values():
        reader = next((each for each in callable_methods if _reads(each, lifecycle)), None)
        makes = _has(method.response, lifecycle.key) and not _has(method.request, lifecycle.key)
        if reader is not None and (method is reader or makes):
            return Watch(reader, lifecycle)
    return None


async def until_final(
    watch: Watch, key: str, read: Callable[[Any, Call], Awaitable[Any]], call: Call
) -> Message:
    """Reads the status again and again until it is final, and shows where it is on a terminal."""
    console = Console(stderr=True)
    request = watch.reader.request(**{watch.lifecycle.key: key})
    pause = _FIRST_PAUSE
    with console.status(f"{watch.lifecycle.entity} {key}") as status:
        while True:
            answer: Message = await read(request, call)
            state = getattr(answer, watch.lifecycle.status)
            if state in watch.lifecycle.terminal:
                return answer
            name = watch.lifecycle.states.get(state, str(state))
            status.update(f"{watch.lifecycle.entity} {key}: {name}")
            remaining = call.remaining()
            if remaining is not None and remaining <= pause:
                raise NotFinal(f"{watch.lifecycle.entity} {key} is still {name}, and the time is over.")
            await call.world.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)


def _reads(method: Method, lifecycle: Lifecycle) -> bool:
    return _has(method.request, lifecycle.key) and _has(method.response, lifecycle.status)


def _has(message: type[Message], field: str) -> bool:
    found = message.DESCRIPTOR.fields_by_name.get(field)
    return found is not None and not found.is_repeated
