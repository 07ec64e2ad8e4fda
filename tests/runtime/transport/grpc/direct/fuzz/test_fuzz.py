"""Whatever is sent: no error leaves the connection, nothing hangs, and nothing is left behind."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Callable

import pytest
import uvloop
from hpack import Encoder
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.transport.grpc.direct.fuzz.fuzz_harness import feed_server
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    CLIENT_PREFACE,
    CONTINUATION,
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    frame,
    rst_stream,
    settings,
    window_update,
)

LOOPS = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
FRAMES = st.builds(
    frame,
    st.integers(0, 10),
    st.integers(0, 255),
    st.sampled_from([0, 1, 2, 3, 5, 7, 2**31, 2**32 - 1]),
    st.binary(max_size=40),
)


def conversation() -> bytes:
    """One in which nearly everything happens that may."""
    encoder = Encoder()

    def call(number: int, path: bytes, *more: tuple[bytes, bytes]) -> bytes:
        usual = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path)]
        usual += [(b"content-type", b"application/grpc"), *more]
        return frame(HEADERS, END_HEADERS, number, encoder.encode(usual))

    message = b"\0" + struct.pack(">L", 20) + b"x" * 20
    packed = b"\x01" + struct.pack(">L", 3) + b"abc"
    trailers = b"\x00\x03x-t\x011"
    return b"".join(
        [
            CLIENT_PREFACE,
            window_update(0, 10_000),
            call(1, b"/at-once") + frame(DATA, END_STREAM, 1, message),
            call(3, b"/later", (b"grpc-timeout", b"5S")) + frame(DATA, 0, 3, message[:7]),
            frame(PING, payload=b"12345678"),
            call(5, b"/never") + frame(DATA, END_STREAM | PADDED, 5, b"\x02" + message + bytes(2)),
            frame(DATA, END_STREAM, 3, message[7:]),
            call(7, b"/again") + frame(DATA, 0, 7, message * 3),
            settings((4, 60_000), (5, 20_000)),
            call(9, b"/at-once", (b"grpc-encoding", b"gzip")) + frame(DATA, END_STREAM, 9, packed),
            frame(PRIORITY, 0, 3, bytes(5)),
            rst_stream(5),
            frame(HEADERS, 0, 11, trailers[:1]) + frame(CONTINUATION, END_BOTH, 11, trailers[1:]),
            frame(HEADERS, END_BOTH, 7, trailers),
            call(13, b"/never", (b"grpc-timeout", b"1n")) + frame(DATA, END_STREAM, 13, message),
            call(15, b"/nowhere"),
            window_update(1, 5) + window_update(7, 100),
        ]
    )


VALID = conversation()


def run_server(pieces: list[bytes], loop: Callable[[], asyncio.AbstractEventLoop]) -> bytes:
    """The written bytes of a server connection, which leaves nothing behind."""
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(feed_server(pieces))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in itertools.pairwise(at)]


@LOOPS
def test_the_conversation_is_one(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """The input that is mutated below is valid without mutations."""
    said = run_server([VALID], loop)
    assert said.count(b"grpc-status\x010") == 3
    assert b"no method /nowhere" in said


@LOOPS
@given(st.lists(st.integers(0, 2000), max_size=30))
def test_it_does_not_matter_how_the_network_cuts(
    loop: Callable[[], asyncio.AbstractEventLoop], places: list[int]
) -> None:
    """Any pieces of a conversation are answered like the whole, apart from when acknowledgements are sent."""
    assert sorted(run_server(cut(VALID, places), loop)) == sorted(run_server([VALID], loop))


@LOOPS
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes(loop: Callable[[], asyncio.AbstractEventLoop], data: bytes, greets: bool) -> None:
    """Noise, before or after the greeting, does no harm."""
    run_server([CLIENT_PREFACE if greets else b"", data], loop)


@LOOPS
@given(st.lists(FRAMES, max_size=20))
def test_any_frames(loop: Callable[[], asyncio.AbstractEventLoop], frames: list[bytes]) -> None:
    """Neither do frames of any kind, with any flags, of any stream."""
    run_server([VALID[: len(VALID) // 2], *frames], loop)
    run_server([CLIENT_PREFACE, *frames], loop)


@LOOPS
@given(st.data())
def test_any_change(loop: Callable[[], asyncio.AbstractEventLoop], data: st.DataObject) -> None:
    """Nor does a conversation of which something is lost, doubled, moved or changed."""
    said = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 5))):
        begin = data.draw(st.integers(0, len(said)))
        end = begin + data.draw(st.integers(0, 40))
        other = data.draw(st.integers(0, len(said)))
        said[begin:end] = data.draw(
            st.one_of(st.binary(max_size=20), st.just(bytes(said[other : other + 60])))
        )
    run_server(cut(bytes(said), data.draw(st.lists(st.integers(0, 2000), max_size=4))), loop)
