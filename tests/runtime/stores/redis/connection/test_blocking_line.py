"""A connection that is waited for on the spot: answers are looked for, then slept for, and not for ever."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from runtime.call.blocking import run_without_loop
from runtime.stores.redis.connection import blocking
from runtime.stores.redis.connection.blocking import BlockingLine
from runtime.stores.redis.connection.pipelined_connection import RedisConnectionLost, ReplyError

Ends = tuple[BlockingLine, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A line, and the socket of whoever answers."""
    here, there = socket.socketpair()
    line = BlockingLine(here)
    yield line, there
    line.close()
    there.close()


def test_an_answer_that_is_there_is_not_slept_for(ends: Ends) -> None:
    line, there = ends
    there.sendall(b"+OK\r\n")
    assert line.ask_one(("PING",)) == "OK"
    there.sendall(b"-ERR no\r\n")
    refused = line.ask_one(("PING",))
    assert isinstance(refused, ReplyError) and str(refused) == "ERR no"
    assert line._unseen == 0


def test_an_answer_that_takes_longer_is_slept_for(ends: Ends) -> None:
    """So are some after it, and then it is looked again."""
    line, there = ends
    line._missed = blocking._UNSEEN

    def answered_late() -> None:
        assert there.recv(100).startswith(b"*1")
        while not line._unseen:
            pass  # It still looks.
        there.sendall(b"$4\r\nla")
        there.sendall(b"te\r\n")

    with ThreadPoolExecutor(1) as thread:
        late = thread.submit(answered_late)
        assert line.ask_one(("GET",)) == "late"
        late.result()
    assert 0 < line._unseen <= blocking._UNSEEN
    for _ in range(line._unseen):
        there.sendall(b":1\r\n")
        assert run_without_loop(line.ask([("PING",)])) == [1]
    assert line._unseen == 0


def test_one_stall_does_not_put_all_that_follow_to_sleep(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many are slept for after each that takes longer than the last; one that is seen ends that."""
    line, there = ends

    monkeypatch.setattr(blocking, "_LOOK_S", 0)

    def answer() -> None:
        there.sendall(b":1\r\n")

    def answer_late() -> None:
        while not line._unseen:
            time.sleep(0.001)  # It still looks.
        answer()

    def late() -> int:
        """How many are slept for after one that was not there when it was looked for."""
        with ThreadPoolExecutor(1) as thread:
            answering = thread.submit(answer_late)
            assert line.ask_one(("PING",)) == 1
            answering.result()
        unseen = line._unseen
        for _ in range(unseen):
            at_once()
        return unseen

    def at_once() -> int:
        """How many are slept for after one that was there."""
        answer()
        assert line.ask_one(("PING",)) == 1
        return line._unseen

    assert [late() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 64, 64]
    assert [at_once(), late(), late()] == [0, 1, 2]


@pytest.mark.parametrize("slept_for", [0, 10])
def test_a_line_whose_other_end_is_gone_is_lost(ends: Ends, slept_for: int) -> None:
    line, there = ends
    line._unseen = slept_for
    there.shutdown(socket.SHUT_WR)
    with pytest.raises(RedisConnectionLost) as lost:
        line.ask_one(("PING",))
    assert lost.value.sent and not line.is_open


def test_an_answer_that_never_comes_is_waited_for_as_long_as_the_kernel_is_told(ends: Ends) -> None:
    line, _ = ends
    line._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, 1000))
    with pytest.raises(RedisConnectionLost) as lost:
        line.ask_one(("PING",))
    assert lost.value.sent and not line.is_open
