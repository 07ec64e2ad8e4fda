"""A local node: the queue in this process, called as any client calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import orjson
from google.protobuf.message import Message

from generated.objectqueue.clients import QueueServiceClient
from generated.objectqueue.system import SYSTEM
from handlers.objectqueue.cli.location import CODES, FAILED, NOT_SET_UP, USAGE, CommandError, Location
from handlers.objectqueue.cli.output import print_message
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


class LocalNode:
    """A node in this process that serves the queue."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self.queue = QueueServiceClient(LocalChannel(SYSTEM, assembly.endpoints, PRINCIPAL))
        self.codec = Codec(SYSTEM)

    def call(self) -> Call:
        """Build the context of a new call."""
        return Call(world=self._assembly.world, log=self._assembly.log, caller=PRINCIPAL)

    def encode_json(self, message: Message) -> orjson.Fragment:
        """Encode a message as JSON, with every number as it was written."""
        return orjson.Fragment(self.codec.writer(type(message))(message))

    def to_dict(self, message: Message) -> Any:
        """Convert a message to plain Python values."""
        return orjson.loads(self.codec.writer(type(message))(message))


class WarningPrinter:
    """A log stream that prints warnings on standard error, one line each."""

    def __init__(self, *, is_verbose: bool) -> None:
        self._is_verbose = is_verbose

    def write(self, text: str) -> None:
        for line in text.splitlines():
            if self._is_verbose:
                print_message(line)
            elif (entry := orjson.loads(line))["level"] not in _QUIET and entry["event"] not in _ANSWERED:
                print_message(f"{entry['level'].lower()}: {entry['message']}")

    def flush(self) -> None:
        """Do nothing: every line is printed at once."""


_ANSWERED = frozenset(("rpc_error", "invalid_transition", "call_denied"))
"""Events that repeat what the response of a call says."""


def run(work: Callable[[LocalNode], Awaitable[Answer]], location: Location) -> Answer:
    """Run work on a local node; raise each failure as a CommandError."""
    try:
        return asyncio.run(_run_on_node(work, location.environ))
    except Failure as failure:
        raise to_command_error(failure) from None
    except SettingsError as error:
        raise CommandError("\n".join(error.problems), USAGE) from None
    except StoreNotSetUp as error:
        raise CommandError(f"{error} {NOT_SET_UP}") from None
    except BrokenPipeError:
        raise  # The reader of the results has gone, which is no failure of the queue.
    except (StoreUnusable, OSError) as error:
        raise CommandError(str(error)) from None


def to_command_error(failure: Failure) -> CommandError:
    """Convert a failed call to an error message with an exit code."""
    if isinstance(failure, Condition):
        return CommandError(f"{failure.message.rstrip('.')}.", CODES.get(failure.grpc, FAILED))
    return CommandError(f"{failure.grpc}: {failure.message}", CODES.get(failure.grpc, FAILED))


async def _run_on_node(work: Callable[[LocalNode], Awaitable[Answer]], environ: Mapping[str, str]) -> Answer:
    async with open_local_node(environ) as node:
        return await work(node)


@asynccontextmanager
async def open_local_node(environ: Mapping[str, str]) -> AsyncIterator[LocalNode]:
    """Open a local node for the queue that the environment names; close it at the end."""
    deployment = SYSTEM.deployments[DEPLOYMENT]
    stream = WarningPrinter(is_verbose=bool(environ.get("QO_LOG")))
    assembly = Assembly(
        SYSTEM, deployment, deployment.nodes[NODE], environ, RealWorld(), _refuse_channel, stream=stream
    )
    try:
        await assembly.open()
        yield LocalNode(assembly)
    finally:
        await assembly.close()


def _refuse_channel(_assembly: Assembly, component: str, service: str) -> Channel:
    raise LookupError(f"{component} calls {service}, which is nowhere")
