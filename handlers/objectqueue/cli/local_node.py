"""The queue in this process: a node that answers for it, called as any client calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import orjson
from google.protobuf.message import Message

from generated.objectqueue.clients import QueueServiceClient
from generated.objectqueue.system import SYSTEM
from handlers.objectqueue.cli.location import CODES, FAILED, NOT_SET_UP, USAGE, Trouble, Where
from handlers.objectqueue.cli.output import say
from runtime.call import Call, Channel
from runtime.call.conditions import Condition, Failure
from runtime.node.assembly import Assembly
from runtime.node.settings import SettingsError
from runtime.stores.store import StoreNotSetUp, StoreUnusable
from runtime.transport.http.codec import Codec
from runtime.transport.in_process import LocalChannel
from runtime.world import RealWorld

Answer = TypeVar("Answer")
PRINCIPAL = "client"
DEPLOYMENT = "local"
NODE = "desk"
_QUIET = frozenset(("INFO", "DEBUG"))


class Desk:
    """The queue, open for calls."""

    def __init__(self, parts: Assembly) -> None:
        self._parts = parts
        self.queue = QueueServiceClient(LocalChannel(SYSTEM, parts.endpoints, PRINCIPAL))
        self.codec = Codec(SYSTEM)

    def call(self) -> Call:
        """The circumstances of a new call."""
        return Call(world=self._parts.world, log=self._parts.log, caller=PRINCIPAL)

    def json(self, message: Message) -> orjson.Fragment:
        """A message as JSON, with every number as it was written."""
        return orjson.Fragment(self.codec.writer(type(message))(message))

    def plain(self, message: Message) -> Any:
        """A message as it is looked into."""
        return orjson.loads(self.codec.writer(type(message))(message))


class Warnings:
    """The log of the node as someone at a terminal wants it: warnings, in a line each."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    def write(self, text: str) -> None:
        for line in text.splitlines():
            if self._whole:
                say(line)
            elif (told := orjson.loads(line))["level"] not in _QUIET and told["event"] not in _ANSWERED:
                say(f"{told['level'].lower()}: {told['message']}")

    def flush(self) -> None:
        """Nothing is kept back."""


_ANSWERED = frozenset(("rpc_error", "invalid_transition", "call_denied"))
"""Events that tell what the answer of a call tells anyway."""


def run(work: Callable[[Desk], Awaitable[Answer]], where: Where) -> Answer:
    """Opens the queue, has something done with it, and closes it; whatever goes wrong is one line."""
    try:
        return asyncio.run(_with_desk(work, where.environ))
    except Failure as failure:
        raise trouble_of(failure) from None
    except SettingsError as error:
        raise Trouble("\n".join(error.problems), USAGE) from None
    except StoreNotSetUp as error:
        raise Trouble(f"{error} {NOT_SET_UP}") from None
    except BrokenPipeError:
        raise  # Nobody reads the results any more, which is no trouble of the queue.
    except (StoreUnusable, OSError) as error:
        raise Trouble(str(error)) from None


def trouble_of(failure: Failure) -> Trouble:
    """How a call that failed is told."""
    if isinstance(failure, Condition):
        return Trouble(f"{failure.message.rstrip('.')}.", CODES.get(failure.grpc, FAILED))
    return Trouble(f"{failure.grpc}: {failure.message}", CODES.get(failure.grpc, FAILED))


async def _with_desk(work: Callable[[Desk], Awaitable[Answer]], environ: Mapping[str, str]) -> Answer:
    async with opened(environ) as desk:
        return await work(desk)


@asynccontextmanager
async def opened(environ: Mapping[str, str]) -> AsyncIterator[Desk]:
    """The queue that some variables name, until it is left."""
    design = SYSTEM.deployments[DEPLOYMENT]
    stream = Warnings(whole=bool(environ.get("QO_LOG")))
    parts = Assembly(SYSTEM, design, design.nodes[NODE], environ, RealWorld(), _nowhere, stream=stream)
    try:
        await parts.open()
        yield Desk(parts)
    finally:
        await parts.close()


def _nowhere(_parts: Assembly, component: str, service: str) -> Channel:
    raise LookupError(f"{component} calls {service}, which is nowhere")
