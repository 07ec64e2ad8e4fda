"""A connection over a real socket: what a client may do, and what it gets for it."""

from __future__ import annotations

import asyncio
import gc
import struct
import weakref
from typing import Any

import pytest
from hpack import Decoder

from runtime.transport.grpc.direct import calm
from runtime.transport.grpc.direct import server_connection as serving_side
from runtime.transport.grpc.direct.server_connection import Connection
from tests.runtime.transport.grpc.direct.peer import (
    ACK,
    BOTH,
    CANCEL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    GREETING,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    INTERNAL,
    MAX_FRAME_SIZE,
    NO_ERROR,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    REFUSED,
    SETTINGS,
    WITH_PRIORITY,
    connected,
    frame,
    library,
    reset,
    settings,
    window,
)
from tests.runtime.transport.grpc.direct.tiny import PATIENCE_S, Tiny, answer, large, limits, served


async def test_the_library_is_answered() -> None:
    """A client that keeps all rules finds that the server does, too, in calls of all sizes at once."""
    async with served(Tiny()) as port, library(port) as client:
        await client.events()
        bodies = [large(size) for size in (0, 1, 5, 16_384, 16_385, 50_000)]
        begun = {client.call(b"/echo", [body[at : at + 16_384] for at in range(0, len(body), 16_384)]): body
                 for body in bodies[:4]}  # fmt: skip
        answers = await client.answers(*begun)
        assert {number: each.body for number, each in answers.items()} == begun
        for each in answers.values():
            assert (each.headers, each.trailers) == ({b":status": b"200"}, {b"ended": b"well"})
        for size in (65_535, 65_536, 300_000):
            number = client.call(b"/large/%d" % size, [])
            assert (await client.answers(number))[number].body == large(size)


async def test_a_message_may_come_in_any_pieces() -> None:
    """Small frames, padded frames and trailers make the same body."""
    async with served(Tiny()) as port, library(port) as client:
        await client.events()
        body = large(3000)
        many = client.call(b"/echo", [body[at : at + 1] for at in range(len(body))])
        padded = client.call(b"/echo", [body[:1000], body[1000:]], padding=200)
        trailing = client.call(b"/echo", [body], trailers=[(b"x-sum", b"1")])
        answers = await client.answers(many, padded, trailing)
        assert [answers[each].body for each in (many, padded, trailing)] == [body] * 3


async def test_a_block_may_come_in_pieces_with_padding_and_a_priority() -> None:
    """Whatever surrounds a header block, and however often it is cut, it is read as one."""
    async with served(Tiny()) as port, connected(port) as peer:
        block = peer.block(b"/large/10", (b"x-long", b"y" * 300))
        first = b"\x03" + bytes(5) + block[:4] + bytes(3)
        pieces = [frame(CONTINUATION, 0, 1, block[at : at + 50]) for at in range(4, len(block), 50)]
        flags = PADDED | WITH_PRIORITY | END_STREAM
        peer.say(frame(HEADERS, flags, 1, first), *pieces, frame(CONTINUATION, END_HEADERS, 1))
        assert (await peer.answer()).body == large(10)


async def test_bytes_may_come_one_by_one() -> None:
    """Where the network cuts a conversation is of no importance."""
    async with served(Tiny()) as port, connected(port, b"") as peer:
        for byte in GREETING + peer.call(1, body=b"hello") + peer.call(3, body=b"again"):
            peer.say(bytes((byte,)))
            await peer.writer.drain()
        answers = await peer.answers(1, 3)
        assert (answers[1].body, answers[3].body) == (b"hello", b"again")


async def test_frames_of_kinds_that_nobody_knows_are_ignored() -> None:
    """They are how the protocol grows; so do settings, flags and the bit that is reserved."""
    async with served(Tiny()) as port, connected(port) as peer:
        peer.say(frame(0x0A, 0xFF, 7, b"x" * 100), frame(0xFF), settings((0x77, 5)))
        peer.say(frame(PRIORITY, 0, 9, bytes(5)), frame(GOAWAY, 0, 0, bytes(8) + b"goodbye"))
        peer.say(frame(HEADERS, BOTH | 0x40, 1 | 1 << 31, peer.block()))
        assert (await peer.answer()).headers == {b":status": b"200"}


async def test_the_server_says_what_it_takes() -> None:
    """Its settings come first, then a larger window; ours are acknowledged, and so are pings."""
    async with served(Tiny(), limits(streams=7, message_bytes=100_000)) as port, connected(port) as peer:
        first = await peer.next()
        assert first is not None
        said = dict(struct.iter_unpack(">HL", first.payload))
        assert (first.kind, said) == (SETTINGS, {3: 7, INITIAL_WINDOW_SIZE: 100_064, 6: 16_384})
        await peer.find(SETTINGS, flags=ACK)
        peer.say(frame(PING, payload=b"12345678"))
        assert (await peer.find(PING, flags=ACK)).payload == b"12345678"


@pytest.mark.parametrize("size", [0, 100, 4095])
async def test_a_client_with_a_smaller_table_hears_that_it_is_used(size: int) -> None:
    """The first block after the setting begins with a size that fits (RFC 7541, 4.2), and no other does."""
    greeting = PREFACE + settings((HEADER_TABLE_SIZE, size))
    async with served(Tiny()) as port, connected(port, greeting) as peer:
        peer.say(peer.call(1, b"/early"), settings((HEADER_TABLE_SIZE, size // 2)), peer.call(3))
        blocks: list[bytes] = []
        while len(blocks) < 4:
            said = await peer.next()
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
    async with served(Tiny()) as port, connected(port, greeting) as peer:
        peer.say(peer.call(1, b"/bare"))
        assert (await peer.find(HEADERS, 1)).payload[:1] == b"\x20"


async def test_a_client_with_the_usual_table_hears_nothing_of_it() -> None:
    async with served(Tiny()) as port, connected(port, PREFACE + settings((HEADER_TABLE_SIZE, 4096))) as peer:
        peer.say(peer.call(1))
        assert (await peer.find(HEADERS, 1)).payload[:1] != b"\x20"


async def test_what_was_taken_in_may_be_sent_again() -> None:
    """Windows grow as they are used, with padding, and with data that nobody wanted."""
    async with served(Tiny(), limits(message_bytes=100)) as port, connected(port) as peer:
        await peer.find(SETTINGS, flags=ACK)
        peer.say(frame(HEADERS, END_HEADERS, 1, peer.block()))
        padded = bytes((255,)) + b"x" * 1000 + bytes(255)
        for _ in range(27):
            peer.say(frame(DATA, PADDED, 1, padded))
        assert struct.unpack(">L", (await peer.find(8, 1)).payload) == (27 * len(padded),)
        peer.say(frame(DATA, END_STREAM, 1))
        assert (await peer.answer()).body == b"x" * 27_000
        for _ in range(1024):
            peer.say(frame(DATA, 0, 1, b"x" * 9000))
        assert struct.unpack(">L", (await peer.find(8, 0)).payload)[0] >= 8 * 2**20


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
async def test_a_stream_sends_no_more_than_its_window(size: int) -> None:
    """An answer waits for a small window, and goes on by as much as it grows."""
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, size))
    async with served(Tiny()) as port, connected(port, greeting) as peer:
        peer.say(peer.call(1, b"/large/2000"))
        await peer.find(HEADERS, 1)
        got = (await peer.find(DATA, 1)).payload if size else b""
        assert len(got) == size
        while len(got) < 2000:
            step = min(333, 2000 - len(got))
            peer.say(window(1, step))
            part = (await peer.find(DATA, 1)).payload
            assert len(part) == step
            got += part
        assert (await peer.find(HEADERS, 1)).flags & END_STREAM
        assert got == large(2000)


async def test_all_streams_send_no_more_than_the_window_of_the_connection() -> None:
    """Answers that are larger than all windows share one, and small ones are not held up for good."""
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1))
    async with served(Tiny()) as port, connected(port, greeting) as peer:
        peer.say(peer.call(1, b"/large/100000"), peer.call(3, b"/large/100000"))
        first = 0
        while first < 65_535:
            first += len((await peer.find(DATA, 1)).payload)
        assert first == 65_535
        await peer.heard()
        peer.say(window(0, 100_000), window(0, 34_465))
        answers = await peer.answers(1, 3)
        assert len(answers[1].body) == 100_000 - 65_535
        assert answers[3].body == large(100_000)


async def test_a_window_may_shrink_below_nothing() -> None:
    """Settings in the middle of an answer take back what was allowed; it goes on when that is made up for."""
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 1000))
    async with served(Tiny()) as port, connected(port, greeting) as peer:
        peer.say(peer.call(1, b"/large/3000"))
        got = (await peer.find(DATA, 1)).payload
        peer.say(settings((INITIAL_WINDOW_SIZE, 0)), window(1, 1000))
        await peer.find(SETTINGS, flags=ACK)
        await peer.heard()
        peer.say(window(1, 1))
        part = await peer.find(DATA, 1)
        assert len(part.payload) == 1
        peer.say(settings((INITIAL_WINDOW_SIZE, 50_000)))
        got += part.payload + (await peer.answer()).body
        assert got == large(3000)


async def test_frames_are_as_large_as_the_client_takes_them() -> None:
    """16 KiB unless it says more; a setting counts from the moment that it is read."""
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**20)) + window(0, 2**20)
    async with served(Tiny()) as port, connected(port, greeting) as peer:
        peer.say(peer.call(1, b"/large/40000"))
        assert (await peer.answer()).sizes == (16_384, 16_384, 40_000 - 2 * 16_384)
        peer.say(settings((MAX_FRAME_SIZE, 20_000)), peer.call(3, b"/large/40000"))
        assert (await peer.answer(3)).sizes == (20_000, 20_000)


async def test_a_client_that_stops_reading_goes_on_where_it_stopped() -> None:
    """What it does not read waits, and neither more data nor more calls are taken in meanwhile."""
    application = Tiny()
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1)) + window(0, 2**31 - 1 - 65_535)
    size, calls = 20_000, 200
    async with served(application) as port, connected(port, greeting, buffer=16_384) as peer:
        numbers = range(1, 2 * calls, 2)
        peer.say(*(peer.call(number, b"/large/%d" % size) for number in numbers))
        await application.until(lambda: application.connections and application.connections[0]._sender.paused)
        connection = application.connections[0]
        assert connection.transport.get_write_buffer_size() < size * calls // 2
        answers = await peer.answers(*numbers)
        assert {each.body for each in answers.values()} == {large(size)}


async def test_a_client_that_never_reads_does_not_fill_the_memory() -> None:
    """Even answers without data, which no window holds back, stop when nobody reads them."""
    application = Tiny()
    calls = 1000
    async with served(application) as port, connected(port, buffer=16_384) as peer, connected(port) as other:
        numbers = range(1, 2 * calls, 2)
        peer.say(*(peer.call(number, b"/bare") for number in numbers))
        await application.until(lambda: any(each._sender.paused for each in application.connections))
        connection = next(each for each in application.connections if each._sender.paused)
        peer.say(frame(0x55, payload=bytes(16_000)) * 200)
        for _ in range(50):
            # The server has had the time to take in whatever it wants to.
            await other.heard()
        assert len(application.bodies) < calls
        assert len(connection._incoming._held) < 2**20
        assert connection.transport.get_write_buffer_size() < 2 * 2**20
        answers = await peer.answers(*numbers)
        assert all(each.headers[b"x-long"] for each in answers.values())
        assert len(application.bodies) == calls


async def test_a_reset_ends_a_stream_for_both() -> None:
    """The application hears of it, nothing more is sent of it, and the rest of the connection goes on."""
    application = Tiny()
    async with served(application) as port, connected(port) as peer:
        peer.say(peer.call(1, b"/wait"), peer.call(3, b"/large/1000000"), peer.call(5, b"/wait"))
        await peer.find(DATA, 3)
        peer.say(reset(1), reset(3))
        await application.until(lambda: sorted(application.lost_streams) == [1, 3])
        answer(*application.waiting[1], b"too late")
        peer.say(window(1, 5), window(3, 2**20), frame(DATA, END_STREAM, 1), reset(1))
        peer.say(window(0, 2**20))
        await peer.heard()
        answer(*application.waiting[5], b"in time")
        assert (await peer.answer(5)).body == b"in time"


async def test_an_answer_before_the_end_of_a_call_asks_for_no_more_of_it() -> None:
    """The rest of it is not wanted, which is no error; whatever of it is under way is swallowed."""
    async with served(Tiny()) as port, connected(port) as peer:
        peer.say(frame(HEADERS, END_HEADERS, 1, peer.block(b"/early")))
        assert (await peer.answer()).body == b"no more, please"
        assert (await peer.find(3, 1)).code == NO_ERROR
        for _ in range(300):
            peer.say(frame(DATA, 0, 1, bytes(16_000)))
        peer.say(frame(HEADERS, BOTH, 1, peer.block()), peer.call(3, body=b"next"))
        assert (await peer.answer(3)).body == b"next"


async def test_too_many_streams_are_refused() -> None:
    """A refused one may be asked for again elsewhere; one that has ended makes room."""
    application = Tiny()
    async with served(application, limits(streams=3)) as port, connected(port) as peer:
        peer.say(*(peer.call(number, b"/wait") for number in (1, 3, 5, 7)))
        assert (await peer.find(3, 7)).code == REFUSED
        answer(*application.waiting[3], b"")
        peer.say(peer.call(9), peer.call(11, b"/wait"), peer.call(13))
        answers = await peer.answers(3, 9, 13)
        assert [answers[each].reset for each in (3, 9, 13)] == [None, None, REFUSED]


async def test_calls_that_were_given_up_and_still_run_count() -> None:
    """Otherwise a client that resets each call at once has as many of them running as it wants."""
    application = Tiny()
    async with served(application, limits(streams=2)) as port, connected(port) as peer:
        peer.say(peer.call(1))
        await peer.answer()
        application.connections[0].unfinished = 2
        peer.say(peer.call(3))
        assert (await peer.answer(3)).reset == REFUSED
        application.connections[0].unfinished = 0
        peer.say(peer.call(5))
        assert (await peer.answer(5)).reset is None


async def test_there_is_room_for_so_many_connections() -> None:
    """One more is closed without a word, until another has gone."""
    application = Tiny(most=2)
    async with served(application) as port, connected(port) as first:
        async with connected(port) as second:
            for each in (first, second):
                await each.heard()
            async with connected(port) as third:
                assert await third.silence() == []
        await application.until(lambda: len(application.connections) == 1)
        async with connected(port) as fourth:
            await fourth.heard()
            await first.heard()


async def test_who_leaves_ends_what_is_under_way_and_takes_nothing_new() -> None:
    """What comes after the leave is ignored, with all its frames; what came before it is answered."""
    application = Tiny()
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 10_000)) + window(0, 2**20)
    async with served(application) as port, connected(port, greeting) as peer:
        peer.say(
            peer.call(1, b"/wait"),
            peer.call(3, b"/large/100000"),
            frame(HEADERS, END_HEADERS, 5, peer.block()),
        )
        await peer.find(DATA, 3)
        await peer.heard()
        gone = application.connections[0].leave()
        assert (await peer.drained()).last == 5
        late = frame(HEADERS, END_HEADERS, 7, peer.block(b"/wait")) + frame(DATA, 0, 7, b"abc")
        peer.say(late, window(7, 5), frame(DATA, END_STREAM, 7, b"abc"), peer.call(9), reset(9))
        peer.say(frame(DATA, END_STREAM, 5, b"last words"))
        assert (await peer.answer(5)).body == b"last words"
        answer(*application.waiting[1], b"done")
        assert (await peer.answer(1)).body == b"done"
        assert not gone.done()
        peer.say(window(3, 90_000))
        assert len((await peer.answer(3)).body) == 90_000
        assert await peer.silence() == []
        await gone
        assert 7 not in application.bodies


async def test_streams_that_are_opened_before_the_client_has_heard_of_the_leave_are_served() -> None:
    """A proxy cannot make a call again that it has passed on; what it sends until it knows is answered."""
    application = Tiny()
    async with served(application) as port, connected(port) as peer:
        peer.say(peer.call(1, b"/wait"))
        await application.until(lambda: application.waiting)
        gone = application.connections[0].leave()
        assert application.connections[0].leave() is gone
        assert (await peer.find(GOAWAY)).last == 2**31 - 1
        ping = await peer.find(PING)
        peer.say(peer.call(3, body=b"not yet"), frame(PING, ACK, 0, b"another!"), peer.call(5, b"/wait"))
        assert (await peer.answer(3)).body == b"not yet"
        peer.say(frame(PING, ACK, 0, ping.payload), peer.call(7, b"/wait"))
        last = await peer.find(GOAWAY)
        assert (last.last, last.code) == (5, NO_ERROR)
        for number in (1, 5):
            answer(*application.waiting[number], b"%d" % number)
        answers = await peer.answers(1, 5)
        assert [answers[each].body for each in (1, 5)] == [b"1", b"5"]
        assert await peer.silence() == []
        await gone
        assert 7 not in application.bodies


async def test_who_does_not_acknowledge_the_leave_is_told_the_last_stream_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that is silent does not hold up a stop; one that is cut off hears the last stream, too."""
    application = Tiny()
    async with served(application) as port, connected(port) as peer, connected(port) as other:
        for each in (peer, other):
            each.say(each.call(1))
            await each.answer()
        first, second = application.connections
        second.leave()
        second.cut()
        assert [each.last for each in await other.silence() if each.kind == GOAWAY] == [2**31 - 1, 1]
        monkeypatch.setattr(serving_side, "_DRAIN_S", 0.0)
        await first.leave()
        assert [each.last for each in await peer.silence() if each.kind == GOAWAY] == [2**31 - 1, 1]


async def test_a_fault_after_the_leave_promises_nothing_more() -> None:
    """The last stream that was promised stays the last, also if a later one was seen."""
    application = Tiny()
    async with served(application) as port, connected(port) as peer:
        peer.say(peer.call(1, b"/wait"))
        await application.until(lambda: application.waiting)
        application.connections[0].leave()
        await peer.drained()
        peer.say(peer.call(5), frame(DATA, 0, 0))
        assert (await peer.end()).last == 1


async def test_the_last_answer_arrives_however_slowly_it_is_read() -> None:
    """A connection that leaves does not go before its last answer has."""
    application = Tiny()
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1)) + window(0, 2**31 - 1 - 65_535)
    size = 2 * 2**20
    async with served(application) as port, connected(port, greeting, buffer=16_384) as peer:
        peer.say(peer.call(1, b"/large/%d" % size))
        await application.until(lambda: application.connections and application.connections[0]._sender.paused)
        application.connections[0].leave()
        assert len((await peer.answer()).body) == size


async def test_a_client_that_does_not_read_the_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing waits for what is left to be read, but not for ever."""
    monkeypatch.setattr(calm, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(serving_side, "_DRAIN_S", 0.05)
    application = Tiny()
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1)) + window(0, 2**31 - 1 - 65_535)
    async with served(application) as port, connected(port, greeting, buffer=16_384) as peer:
        peer.say(peer.call(1, b"/large/2000000"))
        await application.until(lambda: application.connections and application.connections[0]._sender.paused)
        await application.connections[0].leave()


async def test_a_client_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one that never gets to the end of its greeting."""
    monkeypatch.setattr(calm, "_PATIENCE_S", 0.05)
    async with served(Tiny()) as port:
        for greeting in (b"", PREFACE[:10], PREFACE, PREFACE + settings()[:8]):
            async with connected(port, greeting) as peer:
                assert [each.kind for each in await peer.silence()] == [SETTINGS, 8]


async def test_a_silent_client_is_asked_and_given_up() -> None:
    """One that answers when it is asked stays; one that does not goes, with its calls."""
    application = Tiny()
    async with served(application, limits(ping_every_s=0.02)) as port, connected(port) as peer:
        peer.say(peer.call(1, b"/wait"))
        for _ in range(2):
            asked = await peer.find(PING)
            peer.say(frame(PING, ACK, 0, asked.payload))
            vigil = application.connections[0]._vigil
            async with asyncio.timeout(PATIENCE_S):
                while not vigil.heard:
                    await asyncio.sleep(0)
            # As if the time for an answer were over, which is far longer than a busy machine may need for it.
            vigil._judge()
        assert application.lost_streams == []
    silent = Tiny()
    quick = limits(ping_every_s=0.02, ping_timeout_s=0.02)
    async with served(silent, quick) as port, connected(port) as peer:
        peer.say(peer.call(1, b"/wait"))
        assert PING in [each.kind for each in await peer.silence()]
        assert silent.lost_streams == [1]


async def test_an_idle_client_is_asked_only_where_that_is_wanted() -> None:
    """Without calls there is nothing to lose, and a client may sleep."""
    application = Tiny()
    sleepy = limits(ping_every_s=0.01, idle_pings=False)
    async with served(application, sleepy) as port, connected(port) as peer:
        peer.say(peer.call(1))
        await peer.answer()
        looks = 0
        vigil = application.connections[0]._vigil
        look = vigil._ask

        def counted() -> bool:
            nonlocal looks
            looks += 1
            application._changed.set()
            return look()

        vigil._ask = counted
        await application.until(lambda: looks > 3)
        peer.say(peer.call(3, b"/wait"))
        await peer.find(PING)


async def test_a_fault_of_the_application_ends_the_connection_and_is_told() -> None:
    """Nobody else notices, but whoever looks after the server."""
    application = Tiny()
    async with served(application) as port, connected(port) as other:
        told: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _loop, context: told.append(context))
        async with connected(port) as peer:
            peer.say(peer.call(1, b"/wait"), peer.call(3, b"/nowhere"), peer.call(5))
            assert (await peer.end()).code == INTERNAL
        await application.until(lambda: application.lost_streams == [1, 3])
        loop.set_exception_handler(before)
        assert [type(each["exception"]) for each in told] == [RuntimeError]
        other.say(other.call(1, body=b"me?"))
        assert (await other.answer()).body == b"me?"


async def test_nothing_is_left_of_a_connection() -> None:
    """It goes when its client does, without anybody looking for circles of references."""
    application, left = Tiny(), list[weakref.ref[Any]]()
    loop = asyncio.get_running_loop()

    def made() -> Connection[Any]:
        connection: Connection[Any] = Connection(application, limits())
        left.append(weakref.ref(connection))
        return connection

    server = await loop.create_server(made, "127.0.0.1", 0)
    gc.collect()
    gc.disable()
    try:
        port = server.sockets[0].getsockname()[1]
        for said in (b"", GREETING, b"garbage"):
            async with connected(port, said) as peer:
                peer.say(peer.call(1), peer.call(3, b"/wait") if said == GREETING else b"")
                await peer.next()
            await application.until(lambda: not application.connections)
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
    application = Tiny()
    async with served(application) as port, library(port) as client:
        number = client.call(b"/wait", [])
        await application.until(lambda: number in application.waiting)
        client.connection.reset_stream(number, CANCEL)
        client.flush()
        await application.until(lambda: application.lost_streams == [number])
