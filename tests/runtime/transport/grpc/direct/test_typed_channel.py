"""A typed channel to a server that says whatever a test wants it to say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from hpack import Decoder
from msgspec.structs import replace

from generated.studio import messages as m
from generated.studio.system import SYSTEM
from runtime.call.conditions import CallFailed
from runtime.transport.grpc.channel import GrpcChannel
from tests.runtime.hand_world import HandWorld, make_call
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import METHOD
from tests.runtime.transport.grpc.direct.support.raw_peer import HEADERS, Frame
from tests.runtime.transport.grpc.direct.support.scripted_server import ScriptedServer, scripted_server

EMPTY = partial(ScriptedServer.respond, message=b"")
"""A message without any fields, which every method may answer."""
TOKEN = "kept-to-ourselves"
PATIENT = replace(METHOD, policy=replace(METHOD.policy, deadline_ms=int(1000 * PATIENCE_S), retry=None))


@asynccontextmanager
async def typed_method(
    answer: Callable[[ScriptedServer, Frame], bytes],
) -> AsyncIterator[tuple[ScriptedServer, Any]]:
    """A method of a channel that shows a token."""
    async with scripted_server(answer) as (script, channel):
        made = GrpcChannel(SYSTEM, channel._address, "desk", "", token=TOKEN, carrier="direct")
        invoke = made.bind(PATIENT, m.GetPrintRequest, m.GetPrintResponse)

        async def call() -> Any:
            return await invoke(m.GetPrintRequest(film_id="a-film"), make_call(HandWorld()))

        try:
            yield script, call
        finally:
            await made.close()


async def test_a_channel_says_which_encodings_it_takes() -> None:
    """Those that a server may compress its answers with."""
    async with typed_method(EMPTY) as (script, call):
        await call()
        assert script.request_headers[0]["grpc-accept-encoding"] == "identity,deflate,gzip"


async def test_a_token_is_in_no_table() -> None:
    """It is spelled out each time and marked so that no proxy indexes it; all else is a number by then."""
    async with typed_method(EMPTY) as (script, call):
        for _ in range(3):
            await call()
        blocks = [each.payload for each in script.received if each.kind == HEADERS]
        assert script.request_headers[0]["authorization"] == f"Bearer {TOKEN}"
        decoder = Decoder()
        for block in blocks:
            found = {str(header[0]): header for header in decoder.decode(block)}
            assert not found["authorization"].indexable and found[":path"].indexable
            assert TOKEN.encode() in block
        assert not any(TOKEN.encode() in value for _, value in decoder.header_table.dynamic_entries)
        assert METHOD.path.encode() in blocks[0] and METHOD.path.encode() not in blocks[2]


async def test_an_answer_that_is_no_message_of_the_method_is_internal() -> None:
    """The server is at fault, not the caller."""
    async with typed_method(partial(ScriptedServer.respond, message=b"\xff")) as (_, call):
        with pytest.raises(CallFailed) as failed:
            await call()
        assert failed.value.grpc == "INTERNAL"
