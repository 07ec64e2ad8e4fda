"""What no client may do, and what too much of the rest is: each ends its own connection, and no other."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.transport.grpc.direct import calm, streams
from tests.runtime.transport.grpc.direct.calling import answering
from tests.runtime.transport.grpc.direct.peer import (
    ACK,
    BOTH,
    CALM,
    CLOSED,
    COMPRESSION,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FLOW,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PROTOCOL,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    SIZE,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    connected,
    frame,
    reset,
    settings,
    window,
)
from tests.runtime.transport.grpc.direct.tiny import Tiny, answer, limits, served

CALL = bytes.fromhex("838604") + b"\x05/wait"
"""A header block that leaves the table alone."""
ANSWERED = frame(HEADERS, BOTH, 1, bytes.fromhex("838604") + b"\x05/echo")
OPEN = frame(HEADERS, END_HEADERS, 1, CALL)
ENDED = frame(HEADERS, BOTH, 1, CALL)
LONG = b"\x00\x01n\x7f\x81\x7f" + b"v" * (128 * 127)

VIOLATIONS = {
    "data of no stream": (frame(DATA, 0, 0, b"x"), PROTOCOL),
    "data of a stream that nobody opened": (frame(DATA, 0, 3, b"x"), PROTOCOL),
    "data with more padding than data": (OPEN + frame(DATA, PADDED, 1, b"\x02x\x00"[:2]), PROTOCOL),
    "data with nothing but padding, and more": (OPEN + frame(DATA, PADDED, 1, b"\x01"), PROTOCOL),
    "padded data without a length": (OPEN + frame(DATA, PADDED, 1), PROTOCOL),
    "headers of no stream": (frame(HEADERS, BOTH, 0, CALL), PROTOCOL),
    "headers of a server's stream": (frame(HEADERS, BOTH, 2, CALL), PROTOCOL),
    "headers with too much padding": (frame(HEADERS, BOTH | PADDED, 1, b"\xff" + CALL), PROTOCOL),
    "headers with half a priority": (frame(HEADERS, BOTH | WITH_PRIORITY, 1, bytes(4)), SIZE),
    "headers within headers": (frame(HEADERS, 0, 1, CALL) + frame(HEADERS, BOTH, 3, CALL), PROTOCOL),
    "a ping within headers": (frame(HEADERS, 0, 1, CALL) + frame(PING, payload=bytes(8)), PROTOCOL),
    "an unknown frame within headers": (frame(HEADERS, 0, 1, CALL) + frame(0x55), PROTOCOL),
    "headers that go on elsewhere": (
        frame(HEADERS, 0, 1, CALL) + frame(CONTINUATION, END_HEADERS, 3),
        PROTOCOL,
    ),
    "headers that go on after their end": (ENDED + frame(CONTINUATION, END_HEADERS, 1), PROTOCOL),
    "headers that nobody can read": (frame(HEADERS, BOTH, 1, b"\x80"), COMPRESSION),
    "trailers that nobody can read": (OPEN + frame(HEADERS, BOTH, 1, b"\xff\xff"), COMPRESSION),
    "headers of an old stream that nobody can read": (
        frame(HEADERS, BOTH, 3, CALL) + frame(HEADERS, BOTH, 1, b"\x80"),
        COMPRESSION,
    ),
    "too many headers": (frame(HEADERS, BOTH, 1, CALL + LONG[:16_370]), COMPRESSION),
    "headers in too many pieces": (
        frame(HEADERS, 0, 1, bytes(16_384))
        + frame(CONTINUATION, 0, 1, bytes(16_384)) * 3
        + frame(CONTINUATION, 0, 1, b"x"),
        CALM,
    ),
    "a priority of nothing": (frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL),
    "a short priority": (frame(PRIORITY, 0, 1, bytes(4)), SIZE),
    "a reset of nothing": (reset(0), PROTOCOL),
    "a reset of a stream that nobody opened": (reset(1), PROTOCOL),
    "a short reset": (OPEN + frame(RST_STREAM, 0, 1, bytes(3)), SIZE),
    "settings of a stream": (frame(SETTINGS, 0, 1), PROTOCOL),
    "settings that are cut": (frame(SETTINGS, 0, 0, bytes(5)), SIZE),
    "settings that are taken and said": (frame(SETTINGS, ACK, 0, bytes(6)), SIZE),
    "a push that is neither": (settings((2, 2)), PROTOCOL),
    "a window that is too large": (settings((INITIAL_WINDOW_SIZE, 2**31)), FLOW),
    "a window that is too large and mended": (
        settings((INITIAL_WINDOW_SIZE, 2**31), (INITIAL_WINDOW_SIZE, 1)),
        FLOW,
    ),
    "frames that are too small": (settings((MAX_FRAME_SIZE, 16_383)), PROTOCOL),
    "frames that are too large": (settings((MAX_FRAME_SIZE, 2**24)), PROTOCOL),
    "a promise": (frame(PUSH_PROMISE, END_HEADERS, 1, bytes(4) + CALL), PROTOCOL),
    "a ping of a stream": (frame(PING, 0, 1, bytes(8)), PROTOCOL),
    "a short ping": (frame(PING, 0, 0, bytes(7)), SIZE),
    "a leave of a stream": (frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    "a short leave": (frame(GOAWAY, 0, 0, bytes(7)), SIZE),
    "a window that grows by nothing": (window(0, 0), PROTOCOL),
    "a short window": (frame(WINDOW_UPDATE, 0, 0, bytes(3)), SIZE),
    "a window of a stream that nobody opened": (window(1, 1), PROTOCOL),
    "a window that grows too large": (window(0, 2**31 - 1), FLOW),
    "a setting that makes a window too large": (
        OPEN + window(1, 2**31 - 1 - 65_535) + settings((INITIAL_WINDOW_SIZE, 65_536)),
        FLOW,
    ),
    "a frame that is too large": (struct.pack(">LBL", 16_385 << 8, 0, 1), SIZE),
}


@pytest.mark.parametrize("said", VIOLATIONS)
async def test_a_violation_ends_its_connection_with_its_code(said: str) -> None:
    """The client is told which rule it was; calls of its own are lost, and those of others are not."""
    bytes_of_it, code = VIOLATIONS[said]
    application = Tiny()
    async with served(application) as port, connected(port) as other, connected(port) as peer:
        other.say(other.call(1, b"/wait"))
        await other.heard()
        peer.say(bytes_of_it, frame(PING, payload=b"too late"))
        assert (await peer.end()).code == code
        await application.until(lambda: len(application.connections) == 1)
        other.say(other.call(3, body=b"and me?"))
        assert (await other.answer(3)).body == b"and me?"
        assert application.connections[0]._streams.keys() == {1}


STREAM_ERRORS = {
    "data after the end": (ENDED + frame(DATA, 0, 1, b"x"), CLOSED),
    "data after trailers": (OPEN + frame(HEADERS, BOTH, 1, b"") + frame(DATA, 0, 1, b"x"), CLOSED),
    "trailers after the end": (ENDED + frame(HEADERS, BOTH, 1, b""), CLOSED),
    "trailers that do not end": (OPEN + frame(HEADERS, END_HEADERS, 1, b""), PROTOCOL),
    "a window that grows by nothing": (OPEN + window(1, 1 << 31), PROTOCOL),
    "a window that grows too large": (OPEN + window(1, 2**31 - 1), FLOW),
    "trailers that are too large": (
        OPEN + frame(HEADERS, BOTH, 1, b"\x40\x01n" + b"\x7f\x80\x1e" + b"v" * 3967 + b"\xbe" * 5),
        CALM,
    ),
    "a short priority": (OPEN + frame(PRIORITY, 0, 1, bytes(4)), SIZE),
}


@pytest.mark.parametrize("said", STREAM_ERRORS)
async def test_a_stream_error_ends_its_stream_only(said: str) -> None:
    """A reset with its code; other calls of the connection, which may be anybody's, are answered."""
    bytes_of_it, code = STREAM_ERRORS[said]
    application = Tiny()
    async with served(application) as port, connected(port) as peer:
        peer.say(bytes_of_it)
        assert (await peer.answer(1)).reset == code
        assert application.lost_streams in ([], [1])
        peer.say(peer.call(3, body=b"and me?"))
        assert (await peer.answer(3)).body == b"and me?"
        assert application.connections[0]._streams == {}


M, S, P, A = (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/echo"), (b":authority", b"here")
MALFORMED = {
    "no method": [S, P, A],
    "no scheme": [M, P, A],
    "no path": [M, S, A],
    "an empty path": [M, S, (b":path", b"")],
    "no pseudo-header": [(b"te", b"trailers")],
    "two methods": [M, M, S, P],
    "two paths": [M, S, P, P],
    "two authorities": [M, S, P, A, A],
    "the pseudo-header of an answer": [M, S, P, (b":status", b"200")],
    "an unknown pseudo-header": [M, S, P, (b":protocol", b"websocket")],
    "a pseudo-header after a header": [M, S, (b"te", b"trailers"), P],
    "a late pseudo-header": [M, S, P, (b"x", b"y"), A],
    "no CONNECT": [M, A],
    "connection": [M, S, P, (b"connection", b"close")],
    "keep-alive": [M, S, P, (b"keep-alive", b"1")],
    "proxy-connection": [M, S, P, (b"proxy-connection", b"close")],
    "transfer-encoding": [M, S, P, (b"transfer-encoding", b"chunked")],
    "upgrade": [M, S, P, (b"upgrade", b"h2c")],
    "te": [M, S, P, (b"te", b"gzip")],
    "two te": [M, S, P, (b"te", b"trailers"), (b"te", b"trailers")],
    "capital letters": [M, S, P, (b"X-Id", b"1")],
    "a space in a name": [M, S, P, (b"x id", b"1")],
    "an empty name": [M, S, P, (b"", b"1")],
    "a colon in a name": [M, S, P, (b"x:id", b"1")],
    "a byte in a name that is no letter": [M, S, P, (b"caf\xe9", b"1")],
    "a zero in a name": [M, S, P, (b"x\0", b"1")],
    "a line feed in a value": [M, S, P, (b"x-id", b"1\n2")],
    "a space after a value": [M, S, P, (b"x-id", b"1 ")],
    "a line feed in the path": [M, S, (b":path", b"/a\nb")],
    "no content-length": [M, S, P, (b"content-length", b"+5")],
    "two content-lengths": [M, S, P, (b"content-length", b"5"), (b"content-length", b"5")],
    "a content-length without data": [M, S, P, (b"content-length", b"5")],
}


@pytest.mark.parametrize("said", MALFORMED)
async def test_a_malformed_request_ends_its_stream_only(said: str) -> None:
    """No application sees it, and the next call of the connection is answered."""
    application = Tiny()
    async with served(application) as port, connected(port) as peer:
        peer.say(frame(HEADERS, BOTH, 1, peer.encoder.encode(MALFORMED[said])))
        assert (await peer.answer(1)).reset == PROTOCOL
        peer.say(peer.call(3, body=b"and me?"))
        assert (await peer.answer(3)).body == b"and me?"
        assert set(application.heads) == {3}


async def test_a_malformed_request_that_comes_again_is_reset_again() -> None:
    """By then its headers are numbers of entries in the table."""
    async with served(Tiny()) as port, connected(port) as peer:
        for number in (1, 3, 5):
            block = peer.encoder.encode(MALFORMED["connection"])
            peer.say(frame(HEADERS, BOTH, number, block))
            assert (await peer.answer(number)).reset == PROTOCOL
        assert len(block) == 4
        peer.say(frame(HEADERS, BOTH, 7, peer.encoder.encode([M, S, P, (b"te", b"Trailers")])))
        assert (await peer.answer(7)).headers == {b":status": b"200"}


@pytest.mark.parametrize(
    "trailers", [[P], [(b":status", b"200")], [(b"connection", b"close")], [(b"A", b"b")]]
)
async def test_malformed_trailers_end_their_stream_only(trailers: list[tuple[bytes, bytes]]) -> None:
    async with served(Tiny()) as port, connected(port) as peer:
        peer.say(frame(HEADERS, END_HEADERS, 1, peer.block()), frame(DATA, 0, 1, b"x"))
        peer.say(frame(HEADERS, BOTH, 1, peer.encoder.encode(trailers)), peer.call(3))
        answers = await peer.answers(1, 3)
        assert (answers[1].reset, answers[3].reset) == (PROTOCOL, None)


@pytest.mark.parametrize(
    ("sizes", "trailing", "is_right"),
    [
        ((5,), False, True),
        ((2, 3), False, True),
        ((2, 3), True, True),
        ((5, 0), False, True),
        ((4,), False, False),
        ((2, 2), True, False),
        ((6,), False, False),
        ((3, 3), True, False),
        ((), True, False),
    ],
)
async def test_a_content_length_is_the_length_of_the_data(
    sizes: tuple[int, ...], trailing: bool, is_right: bool
) -> None:
    """Without padding; whether the data or trailers end the stream. Without it, nothing is counted."""
    application = Tiny()
    async with served(application) as port, connected(port) as peer:
        peer.say(frame(HEADERS, END_HEADERS, 1, peer.block(b"/echo", (b"content-length", b"5"))))
        for at, size in enumerate(sizes):
            ends = END_STREAM if at == len(sizes) - 1 and not trailing else 0
            peer.say(frame(DATA, PADDED | ends, 1, b"\x03" + b"x" * size + bytes(3)))
        if trailing:
            peer.say(frame(HEADERS, BOTH, 1, b""))
        peer.say(peer.call(3, body=b"next"))
        answers = await peer.answers(1, 3)
        assert answers[1].reset == (None if is_right else PROTOCOL)
        assert application.lost_streams == ([] if is_right else [1])
        assert answers[3].body == b"next"


async def test_a_tunnel_is_no_malformed_request() -> None:
    """CONNECT has neither a scheme nor a path; the application may say that it has no tunnels."""
    async with answering({}) as (port, _), connected(port) as peer:
        peer.say(frame(HEADERS, BOTH, 1, peer.encoder.encode([(b":method", b"CONNECT"), A])))
        assert (await peer.answer(1)).headers[b":status"] == b"405"


def blocks(number: int, block: bytes) -> bytes:
    """The frames of a header block of any size."""
    parts = [block[at : at + 16_384] for at in range(0, len(block), 16_384)]
    said = [frame(HEADERS, END_STREAM, number, parts[0])]
    said += [frame(CONTINUATION, 0, number, part) for part in parts[1:]]
    return b"".join((*said, frame(CONTINUATION, END_HEADERS, number)))


@pytest.mark.parametrize("size", [17_000, 60_000])
async def test_headers_that_are_too_large_end_their_stream_only(size: int) -> None:
    """The table stays in step: what the block has added to it is known to the blocks that follow."""
    application = Tiny()
    async with served(application) as port, connected(port) as peer:
        peer.say(peer.call(1, b"/wait"))
        large = peer.block(b"/echo", (b"x-before", b"1"), (b"x-large", b"x" * size), (b"x-after", b"2" * 99))
        peer.say(blocks(3, large))
        assert (await peer.answer(3)).headers == {b":status": b"431"}
        again = peer.block(b"/echo", (b"x-after", b"2" * 99))
        assert len(again) < 99
        peer.say(frame(HEADERS, BOTH, 5, again))
        assert (await peer.answer(5)).headers == {b":status": b"200"}
        assert application.heads[5][b"x-after"] == b"2" * 99
        assert application.lost_streams == []
        answer(*application.waiting[1], b"still here")
        assert (await peer.answer(1)).body == b"still here"


@pytest.mark.parametrize(
    "greeting",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        bytes(1000),
        PREFACE + frame(PING, payload=bytes(8)),
        PREFACE + frame(SETTINGS, ACK),
        PREFACE + ENDED,
    ],
    ids=["HTTP/1", "almost", "TLS", "zeros", "a ping first", "an acknowledgement first", "a call first"],
)
async def test_who_does_not_speak_the_protocol_is_told_so(greeting: bytes) -> None:
    """The first bytes tell whether both mean the same."""
    async with served(Tiny()) as port, connected(port, greeting) as peer:
        assert (await peer.end()).code == PROTOCOL


def floods() -> Iterator[tuple[str, bytes, bytes]]:
    """What comes once, and then again and again."""
    waiting = frame(HEADERS, END_HEADERS, 1, CALL)
    yield "settings", b"", settings()
    yield "acknowledged settings", b"", frame(SETTINGS, ACK)
    yield "pings", b"", frame(PING, payload=bytes(8))
    yield "acknowledged pings", b"", frame(PING, ACK, payload=bytes(8))
    yield "priorities", b"", frame(PRIORITY, 0, 1, bytes(5))
    yield "unknown frames", b"", frame(0x55)
    yield "leaves", b"", frame(GOAWAY, 0, 0, bytes(8))
    yield "empty data", waiting, frame(DATA, 0, 1)
    yield "padding", waiting, frame(DATA, PADDED, 1, b"\x03" + bytes(3))
    yield "data of an old stream", ANSWERED, frame(DATA, 0, 1, b"x")
    yield "headers of an old stream", ANSWERED, frame(HEADERS, BOTH, 1, CALL)
    yield "resets of an old stream", ANSWERED, reset(1)
    yield "windows", b"", window(0, 1)
    yield "windows of a stream", waiting, window(1, 1)
    yield "malformed requests", b"", b"".join(frame(HEADERS, BOTH, each, b"") for each in range(1, 401, 2))
    yield "pieces of a header", frame(HEADERS, 0, 1), frame(CONTINUATION, 0, 1)


@pytest.mark.parametrize("flood", [name for name, *_ in floods()])
async def test_a_flood_of_what_brings_nothing_forward_is_stopped(
    flood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of such frames is allowed, and thousands of them a second are not."""
    monkeypatch.setattr(calm, "_ODD_FRAMES", 100)
    async with served(Tiny()) as port, connected(port) as other, connected(port) as peer:
        begin, again = next((begin, again) for name, begin, again in floods() if name == flood)
        peer.say(begin, again * 400)
        assert (await peer.end()).code == CALM
        other.say(other.call(1, body=b"calm"))
        assert (await other.answer()).body == b"calm"


async def test_calls_that_are_reset_at_once_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs the server more than the client."""
    monkeypatch.setattr(calm, "_ODD_FRAMES", 100)
    made = calm.Restraint.__init__

    def stand_still(self: calm.Restraint, *given: Any) -> None:
        """All come within the same second, however long the machine takes to send them."""
        made(self, *given)
        self._now = lambda: self._odd_since

    monkeypatch.setattr(calm.Restraint, "__init__", stand_still)
    application = Tiny()
    async with served(application) as port, connected(port) as peer:
        peer.say(*(peer.call(number, b"/wait") + reset(number) for number in range(1, 801, 2)))
        assert (await peer.end()).code == CALM
        assert len(application.lost_streams) <= 101


async def test_settings_weigh_as_much_as_the_streams_that_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them is for all streams; with many, fewer are taken."""
    monkeypatch.setattr(calm, "_ODD_FRAMES", 100)
    async with served(Tiny()) as port, connected(port) as peer:
        peer.say(*(frame(HEADERS, BOTH, number, CALL) for number in range(1, 129, 2)))
        peer.say(*(settings((INITIAL_WINDOW_SIZE, 1000 + at % 2)) for at in range(30)))
        assert (await peer.end()).code == CALM


async def test_a_busy_client_is_not_mistaken_for_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    """It thanks for each answer with a larger window, asks along with each, and sends much of what it then
    hears is not wanted."""
    monkeypatch.setattr(calm, "_ODD_FRAMES", 100)
    async with served(Tiny(), limits(shortest_ping_s=3600)) as port, connected(port) as peer:
        for number in range(1, 801, 2):
            peer.say(peer.call(number, body=b"a message"), window(0, 9))
            assert (await peer.answer(number)).body == b"a message"
            peer.say(frame(PING, payload=bytes(8)))
        peer.say(frame(HEADERS, END_HEADERS, 801, peer.block(b"/early")))
        peer.say(frame(DATA, 0, 801, bytes(16_384)) * 400)
        peer.say(peer.call(803, body=b"still here"))
        answers = await peer.answers(801, 803)
        assert answers[803].body == b"still here"


async def test_small_windows_for_a_long_answer_are_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as each lets a sensible part of it through."""
    monkeypatch.setattr(calm, "_ODD_FRAMES", 100)
    async with served(Tiny()) as port, connected(port) as peer:
        peer.say(settings((INITIAL_WINDOW_SIZE, 2000)), peer.call(1, b"/large/600000"))
        peer.say((window(1, 2000) + window(0, 2000)) * 300)
        assert len((await peer.answer()).body) == 600_000


async def test_an_answer_that_is_taken_byte_by_byte_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame for a byte is more work than it is worth."""
    monkeypatch.setattr(calm, "_ODD_FRAMES", 100)
    async with served(Tiny()) as port, connected(port) as peer:
        peer.say(settings((INITIAL_WINDOW_SIZE, 0)), peer.call(1, b"/large/600000"), window(1, 1) * 400)
        assert (await peer.end()).code == CALM


async def test_pings_that_come_too_soon_are_stopped_in_words_that_clients_know() -> None:
    """The first is always answered, two more are forgiven, and an answer starts the count anew."""
    async with served(Tiny(), limits(shortest_ping_s=3600)) as port, connected(port) as peer:
        for number in (1, 3):
            for _ in range(3):
                await peer.heard()
            peer.say(peer.call(number))
            await peer.answer(number)
        for _ in range(3):
            await peer.heard()
        peer.say(frame(PING, payload=bytes(8)))
        end = await peer.end()
        assert (end.code, end.payload[8:]) == (CALM, b"too_many_pings")


async def test_answers_that_nobody_reads_are_bounded_for_all_connections() -> None:
    """Whoever shares a server with those who do not read is answered when some of it is read."""
    application = Tiny()
    application.held.most = 150_000
    async with served(application) as port, connected(port) as one, connected(port) as another:
        for peer in (one, another):
            peer.say(settings((INITIAL_WINDOW_SIZE, 0)), peer.call(1, b"/large/100000"))
            if peer is one:
                await peer.heard()
        assert (await another.answer(1)).reset == CALM
        one.say(window(1, 100_000), window(0, 100_000))
        assert len((await one.answer(1)).body) == 100_000
        another.say(another.call(3, b"/large/100000"), window(3, 100_000), window(0, 100_000))
        assert len((await another.answer(3)).body) == 100_000


async def test_who_does_not_read_his_answers_gets_no_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a client is bounded for all its calls together; others of its calls go on."""
    application = Tiny()
    monkeypatch.setattr(streams, "_MOST_HELD", 300_000)
    async with served(application, limits(message_bytes=1000)) as port, connected(port) as peer:
        peer.say(settings((INITIAL_WINDOW_SIZE, 0)))
        peer.say(*(peer.call(number, b"/large/100000") for number in (1, 3, 5, 7)))
        assert (await peer.answer(7)).reset == CALM
        peer.say(peer.call(9), reset(1), reset(3), reset(5))
        assert (await peer.answer(9)).reset is None
