"""A server connection over a real socket: requests, responses, resets and limits."""

from __future__ import annotations

import asyncio
import gc
import struct
import weakref
from typing import Any

import pytest
from hpack import Decoder

from runtime.transport.grpc.direct.http2.server_connection import ServerConnection
from tests.runtime.transport.grpc.direct.support.echo_application import (
    PATIENCE_S,
    EchoApplication,
    limits,
    make_body,
    respond,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    CANCEL,
    CLIENT_PREFACE,
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    INTERNAL_ERROR,
    NO_ERROR,
    PING,
    PREFACE,
    REFUSED_STREAM,
    SETTINGS,
    connect,
    frame,
    h2_client,
    rst_stream,
    settings,
    window_update,
)


async def test_the_library_is_answered() -> None:
    """A client that keeps all rules finds that the server does, too, in calls of all sizes at once."""
    async with start_server(EchoApplication()) as port, h2_client(port) as client:
        await client.events()
        bodies = [make_body(size) for size in (0, 1, 5, 16_384, 16_385, 50_000)]
        begun = {}
        for body in bodies[:4]:
            parts = [body[at : at + 16_384] for at in range(0, len(body), 16_384)]
            begun[client.request(b"/echo", parts)] = body
        answers = await client.read_responses(*begun)
        assert {number: each.body for number, each in answers.items()} == begun
        for each in answers.values():
            assert (each.headers, each.trailers) == ({b":status": b"200"}, {b"ended": b"well"})
        for size in (65_535, 65_536, 300_000):
            number = client.request(b"/large/%d" % size, [])
            assert (await client.read_responses(number))[number].body == make_body(size)


async def test_a_message_may_come_in_any_pieces() -> None:
    """Small frames, padded frames and trailers make the same body."""
    async with start_server(EchoApplication()) as port, h2_client(port) as client:
        await client.events()
        body = make_body(3000)
        many = client.request(b"/echo", [body[at : at + 1] for at in range(len(body))])
        padded = client.request(b"/echo", [body[:1000], body[1000:]], padding=200)
        trailing = client.request(b"/echo", [body], trailers=[(b"x-sum", b"1")])
        answers = await client.read_responses(many, padded, trailing)
        assert [answers[each].body for each in (many, padded, trailing)] == [body] * 3


async def test_bytes_may_come_one_by_one() -> None:
    """Where the network cuts a conversation is of no importance."""
    async with start_server(EchoApplication()) as port, connect(port, b"") as peer:
        for byte in CLIENT_PREFACE + peer.request(1, body=b"hello") + peer.request(3, body=b"again"):
            peer.send(bytes((byte,)))
            await peer.writer.drain()
        answers = await peer.read_responses(1, 3)
        assert (answers[1].body, answers[3].body) == (b"hello", b"again")


async def test_the_server_sends_its_settings() -> None:
    """Its settings come first, then a larger window; ours are acknowledged, and so are pings."""
    async with (
        start_server(EchoApplication(), limits(streams=7, message_bytes=100_000)) as port,
        connect(port) as peer,
    ):
        first = await peer.read_frame()
        assert first is not None
        said = dict(struct.iter_unpack(">HL", first.payload))
        assert (first.kind, said) == (SETTINGS, {3: 7, INITIAL_WINDOW_SIZE: 100_064, 6: 16_384})
        await peer.wait_for(SETTINGS, flags=ACK)
        peer.send(frame(PING, payload=b"12345678"))
        assert (await peer.wait_for(PING, flags=ACK)).payload == b"12345678"


@pytest.mark.parametrize("size", [0, 100, 4095])
async def test_a_client_with_a_smaller_table_hears_that_it_is_used(size: int) -> None:
    """The first block after the setting begins with a size that fits (RFC 7541, 4.2), and no other does."""
    greeting = PREFACE + settings((HEADER_TABLE_SIZE, size))
    async with start_server(EchoApplication()) as port, connect(port, greeting) as peer:
        peer.send(peer.request(1, b"/early"), settings((HEADER_TABLE_SIZE, size // 2)), peer.request(3))
        blocks: list[bytes] = []
        while len(blocks) < 4:
            said = await peer.read_frame()
            assert said is not None
            if said.kind == HEADERS:
                blocks.append(said.payload)
        assert [block[:1] == b"\x20" for block in blocks] == [True, False, False, False]
        decoder = Decoder()
        decoder.max_allowed_table_size = size
        assert [dict(decoder.decode(block, raw=True)) for block in blocks[:2]] == [
            {b":status": b"200"},
            {b"ended": b"well"},
        ]


async def test_trailers_alone_begin_with_the_size_of_the_table() -> None:
    greeting = PREFACE + settings((HEADER_TABLE_SIZE, 0))
    async with start_server(EchoApplication()) as port, connect(port, greeting) as peer:
        peer.send(peer.request(1, b"/bare"))
        assert (await peer.wait_for(HEADERS, 1)).payload[:1] == b"\x20"


async def test_a_client_with_the_usual_table_hears_nothing_of_it() -> None:
    async with (
        start_server(EchoApplication()) as port,
        connect(port, PREFACE + settings((HEADER_TABLE_SIZE, 4096))) as peer,
    ):
        peer.send(peer.request(1))
        assert (await peer.wait_for(HEADERS, 1)).payload[:1] != b"\x20"


async def test_a_reset_ends_a_stream_for_both() -> None:
    """The application hears of it, nothing more is sent of it, and the rest of the connection goes on."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(peer.request(1, b"/wait"), peer.request(3, b"/large/1000000"), peer.request(5, b"/wait"))
        await peer.wait_for(DATA, 3)
        peer.send(rst_stream(1), rst_stream(3))
        await application.wait_until(lambda: sorted(application.aborted_streams) == [1, 3])
        respond(*application.waiting[1], b"too late")
        peer.send(window_update(1, 5), window_update(3, 2**20), frame(DATA, END_STREAM, 1), rst_stream(1))
        peer.send(window_update(0, 2**20))
        await peer.ping()
        respond(*application.waiting[5], b"in time")
        assert (await peer.read_response(5)).body == b"in time"


async def test_an_answer_before_the_end_of_a_call_asks_for_no_more_of_it() -> None:
    """The rest of it is not wanted, which is no error; frames in flight are ignored."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(frame(HEADERS, END_HEADERS, 1, peer.encode(b"/early")))
        assert (await peer.read_response()).body == b"no more, please"
        assert (await peer.wait_for(3, 1)).code == NO_ERROR
        for _ in range(300):
            peer.send(frame(DATA, 0, 1, bytes(16_000)))
        peer.send(frame(HEADERS, END_BOTH, 1, peer.encode()), peer.request(3, body=b"next"))
        assert (await peer.read_response(3)).body == b"next"


async def test_calls_that_were_given_up_and_still_run_count() -> None:
    """Otherwise a client that resets each call at once has as many of them running as it wants."""
    application = EchoApplication()
    async with start_server(application, limits(streams=2)) as port, connect(port) as peer:
        peer.send(peer.request(1))
        await peer.read_response()
        application.connections[0].cancelled_calls = 2
        peer.send(peer.request(3))
        assert (await peer.read_response(3)).reset == REFUSED_STREAM
        application.connections[0].cancelled_calls = 0
        peer.send(peer.request(5))
        assert (await peer.read_response(5)).reset is None


async def test_there_is_room_for_so_many_connections() -> None:
    """One more is closed without a word, until another has gone."""
    application = EchoApplication(max_connections=2)
    async with start_server(application) as port, connect(port) as first:
        async with connect(port) as second:
            for each in (first, second):
                await each.ping()
            async with connect(port) as third:
                assert await third.read_to_end() == []
        await application.wait_until(lambda: len(application.connections) == 1)
        async with connect(port) as fourth:
            await fourth.ping()
            await first.ping()


async def test_a_fault_of_the_application_is_reported_and_ends_the_connection() -> None:
    """Other connections go on, and the exception handler gets it."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as other:
        contexts: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _loop, context: contexts.append(context))
        async with connect(port) as peer:
            peer.send(peer.request(1, b"/wait"), peer.request(3, b"/nowhere"), peer.request(5))
            assert (await peer.read_goaway()).code == INTERNAL_ERROR
        await application.wait_until(lambda: application.aborted_streams == [1, 3])
        loop.set_exception_handler(before)
        assert [type(each["exception"]) for each in contexts] == [RuntimeError]
        other.send(other.request(1, body=b"me?"))
        assert (await other.read_response()).body == b"me?"


async def test_nothing_is_left_of_a_connection() -> None:
    """It is freed with its client, without a cycle collection."""
    application, left = EchoApplication(), list[weakref.ref[Any]]()
    loop = asyncio.get_running_loop()

    def make_connection() -> ServerConnection[Any]:
        connection: ServerConnection[Any] = ServerConnection(application, limits())
        left.append(weakref.ref(connection))
        return connection

    server = await loop.create_server(make_connection, "127.0.0.1", 0)
    gc.collect()
    gc.disable()
    try:
        port = server.sockets[0].getsockname()[1]
        for said in (b"", CLIENT_PREFACE, b"garbage"):
            async with connect(port, said) as peer:
                peer.send(peer.request(1), peer.request(3, b"/wait") if said == CLIENT_PREFACE else b"")
                await peer.read_frame()
            await application.wait_until(lambda: not application.connections)
        application.waiting.clear()
        async with asyncio.timeout(PATIENCE_S):
            while any(each() is not None for each in left):
                await asyncio.sleep(0)
    finally:
        gc.enable()
        server.close()
    assert len(left) == 3


async def test_cancelling_by_the_library() -> None:
    """A reset of the library is a loss for the application, whatever its code."""
    application = EchoApplication()
    async with start_server(application) as port, h2_client(port) as client:
        number = client.request(b"/wait", [])
        await application.wait_until(lambda: number in application.waiting)
        client.connection.reset_stream(number, CANCEL)
        client.flush()
        await application.wait_until(lambda: application.aborted_streams == [number])
