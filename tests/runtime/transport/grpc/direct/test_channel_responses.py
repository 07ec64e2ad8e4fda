"""Responses of other servers and proxies, as a channel converts them."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable

import pytest

from runtime.transport.grpc.direct.messages import GrpcStatusError, frame_message
from tests.runtime.transport.grpc.direct.support.echo_application import MESSAGE_BYTES
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    NO_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    RST_STREAM,
    Frame,
    frame,
    rst_stream,
)
from tests.runtime.transport.grpc.direct.support.scripted_server import (
    OK,
    ScriptedServer,
    call_echo,
    in_turns,
    scripted_server,
)


@pytest.mark.parametrize(
    ("http", "status"),
    [("401", "UNAUTHENTICATED"), ("404", "UNIMPLEMENTED"), ("503", "UNAVAILABLE"), ("418", "UNKNOWN")],
)
async def test_a_response_that_is_not_grpc_fails_by_its_status(http: str, status: str) -> None:
    """A proxy may stand between."""
    async with scripted_server(
        lambda script, found: script.encode_response(found.stream, [(":status", http)])
    ) as (_, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == status and http in error.value.message


PAGE = b"<html><body>something is wrong</body></html>"
HTML = ("content-type", "text/html")
ENDS = ("ended by the body", "ended by trailers", "not ended")


def page(script: ScriptedServer, found: Frame, http: str, end: str) -> bytes:
    """A response of a proxy, with one of its possible ends."""
    block = script.encoder.encode([(":status", http), HTML])
    ends = END_STREAM if end == "ended by the body" else 0
    said = frame(HEADERS, END_HEADERS, found.stream, block) + frame(DATA, ends, found.stream, PAGE)
    if end == "ended by trailers":
        said += frame(HEADERS, END_BOTH, found.stream, script.encoder.encode([("x-served-by", "proxy")]))
    return said


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("http", "status"),
    [
        ("200", "UNKNOWN"),
        ("400", "INTERNAL"),
        ("401", "UNAUTHENTICATED"),
        ("403", "PERMISSION_DENIED"),
        ("404", "UNIMPLEMENTED"),
        ("429", "UNAVAILABLE"),
        ("500", "UNKNOWN"),
        ("502", "UNAVAILABLE"),
        ("503", "UNAVAILABLE"),
        ("504", "UNAVAILABLE"),
    ],
)
async def test_a_page_instead_of_a_response_fails_by_its_status(http: str, status: str, end: str) -> None:
    """The connection is good for the next call, and a page that goes on is not read to its end."""
    turns = in_turns(lambda script, found: page(script, found, http, end), ScriptedServer.respond)
    async with scripted_server(turns) as (script, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == status and http in error.value.message
        assert await call_echo(channel) == b"good"
        assert script.connections == 1
        assert any(each.kind == RST_STREAM for each in script.received) == (end != "ended by the body")


async def test_an_answer_without_trailers_has_the_status_of_its_headers() -> None:
    """Some servers end a stream with an empty frame of data; without any status the end is unknown."""
    turns = iter([OK, [*OK, ("grpc-status", "5"), ("grpc-message", "gone")]])

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        block = script.encoder.encode(next(turns))
        return frame(HEADERS, END_HEADERS, found.stream, block) + frame(DATA, END_STREAM, found.stream)

    async with scripted_server(answer) as (script, channel):
        for status in ("UNKNOWN", "NOT_FOUND"):
            with pytest.raises(GrpcStatusError) as error:
                await call_echo(channel)
            assert error.value.status == status
        assert script.connections == 1


async def test_a_body_before_its_headers_ends_the_call_alone() -> None:
    """Such an answer is malformed, as HTTP/2 says."""
    turns = in_turns(lambda _, found: frame(DATA, 0, found.stream, b"early"), ScriptedServer.respond)
    async with scripted_server(turns) as (script, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "INTERNAL"
        assert await call_echo(channel) == b"good"
        assert script.connections == 1
        assert (await script.wait_for(RST_STREAM)).code == PROTOCOL_ERROR


BODIES = {
    "no message": (b"", "UNIMPLEMENTED"),
    "two messages": (frame_message(b"one") + frame_message(b"two"), "UNIMPLEMENTED"),
    "a message and a half": (frame_message(b"one") + b"\0\0", "UNIMPLEMENTED"),
    "half a prefix": (b"\0\0", "INTERNAL"),
    "half a message": (b"\0\0\0\0\5cut", "INTERNAL"),
    "compressed by no algorithm": (b"\1\0\0\0\1x", "INTERNAL"),
    "an unknown flag": (b"\2\0\0\0\1x", "INTERNAL"),
}


@pytest.mark.parametrize("name", BODIES)
async def test_anything_but_one_whole_message_is_no_answer(name: str) -> None:
    """It is no fault of the caller, as INVALID_ARGUMENT would be, which only applications say."""
    body, status = BODIES[name]

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        return script.encode_response(
            found.stream, OK, [("grpc-status", "0")], body=frame(DATA, 0, found.stream, body)
        )

    async with scripted_server(in_turns(answer, ScriptedServer.respond)) as (script, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == status
        assert await call_echo(channel) == b"good"
        assert script.connections == 1


@pytest.mark.parametrize(
    ("code", "name", "status"),
    [
        (0, "NO_ERROR", "INTERNAL"),
        (1, "PROTOCOL_ERROR", "INTERNAL"),
        (2, "INTERNAL_ERROR", "INTERNAL"),
        (3, "FLOW_CONTROL_ERROR", "INTERNAL"),
        (4, "SETTINGS_TIMEOUT", "INTERNAL"),
        (6, "FRAME_SIZE_ERROR", "INTERNAL"),
        (8, "CANCEL", "CANCELLED"),
        (9, "COMPRESSION_ERROR", "INTERNAL"),
        (10, "CONNECT_ERROR", "INTERNAL"),
        (11, "ENHANCE_YOUR_CALM", "RESOURCE_EXHAUSTED"),
        (12, "INADEQUATE_SECURITY", "PERMISSION_DENIED"),
        (99, "code 99", "INTERNAL"),
    ],
)
async def test_a_reset_call_fails_by_its_code(code: int, name: str, status: str) -> None:
    """The connection goes on."""
    async with scripted_server(lambda script, found: rst_stream(found.stream, code)) as (script, channel):
        for _ in range(2):
            with pytest.raises(GrpcStatusError) as error:
                await call_echo(channel)
            assert error.value.status == status and error.value.message.endswith(name)
        assert script.connections == 1


async def test_a_stream_that_is_refused_after_its_headers_is_not_made_again() -> None:
    """The server has begun the call, so that it may have been carried out."""

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        head = frame(HEADERS, END_HEADERS, found.stream, script.encoder.encode(OK))
        return head + rst_stream(found.stream, REFUSED_STREAM)

    async with scripted_server(answer) as (script, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "UNAVAILABLE"
        assert len(script.request_headers) == 1


async def test_a_reset_after_the_trailers_takes_no_answer_back() -> None:
    """With NO_ERROR a server says that it does not need the rest of the request."""

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        return script.respond(found) + rst_stream(found.stream, NO_ERROR)

    async with scripted_server(answer) as (script, channel):
        for _ in range(3):
            assert await call_echo(channel) == b"good"
        assert script.connections == 1


@pytest.mark.parametrize("many", [1, 3])
async def test_informational_answers_are_skipped(many: int) -> None:
    """A proxy may send 100 or 103 before the answer."""

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        early = [
            script.encoder.encode([(":status", "103"), ("link", "</>; rel=preload")]) for _ in range(many)
        ]
        said = [frame(HEADERS, END_HEADERS, found.stream, each) for each in early]
        return b"".join(said) + script.respond(found)

    async with scripted_server(answer) as (script, channel):
        for _ in range(3):
            assert await call_echo(channel) == b"good"
        assert script.connections == 1


@pytest.mark.parametrize("again", [OK, [("grpc-status", "0")], [(":status", "100")]])
async def test_headers_in_the_middle_end_the_call_alone(again: list[tuple[str, str]]) -> None:
    """An answer has headers once, and trailers end its stream; another one on the connection is good."""

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        blocks = [script.encoder.encode(each) for each in (OK, again)]
        return b"".join(frame(HEADERS, END_HEADERS, found.stream, each) for each in blocks)

    async with scripted_server(in_turns(answer, ScriptedServer.respond)) as (script, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "INTERNAL"
        assert await call_echo(channel) == b"good"
        assert script.connections == 1
        assert (await script.wait_for(RST_STREAM)).code == PROTOCOL_ERROR


def respond_compressed(encoding: str, message: bytes) -> Callable[[ScriptedServer, Frame], bytes]:
    """An answer whose message is compressed, or is said to be."""
    compress: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
    data = compress.get(encoding, bytes)(message)
    body = b"\1" + struct.pack(">L", len(data)) + data

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        head = [*OK, ("grpc-encoding", encoding)]
        return script.encode_response(
            found.stream, head, [("grpc-status", "0")], body=frame(DATA, 0, found.stream, body)
        )

    return answer


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_compressed_answers_are_unpacked(encoding: str) -> None:
    """And one that would be longer than a message may be is not unpacked."""
    short, bomb = (
        respond_compressed(encoding, b"hello" * 1000),
        respond_compressed(encoding, bytes(MESSAGE_BYTES + 1)),
    )
    async with scripted_server(in_turns(short, bomb, short)) as (script, channel):
        assert await call_echo(channel) == b"hello" * 1000
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "RESOURCE_EXHAUSTED"
        assert await call_echo(channel) == b"hello" * 1000
        assert script.connections == 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize(
    "data", [b"plain", b"", gzip.compress(b"cut", mtime=0)[:-1]], ids=["plain", "empty", "cut"]
)
async def test_an_answer_that_cannot_be_unpacked_is_internal(encoding: str, data: bytes) -> None:
    """Whatever is wrong with it."""

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        body = frame(DATA, 0, found.stream, b"\1" + struct.pack(">L", len(data)) + data)
        return script.encode_response(
            found.stream, [*OK, ("grpc-encoding", encoding)], [("grpc-status", "0")], body=body
        )

    async with scripted_server(answer) as (_, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "INTERNAL"


@pytest.mark.parametrize("encoding", ["identity", "snappy"])
async def test_an_encoding_that_was_not_offered_is_internal(encoding: str) -> None:
    """The response could not be read."""
    async with scripted_server(respond_compressed(encoding, b"hello")) as (_, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "INTERNAL"
