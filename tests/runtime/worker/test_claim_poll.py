"""A long poll that claims: pushed at once, never cancelled on its way, and drained at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from generated.bakery.errors import BookClosed
from runtime.worker.claim_poll import ClaimPoll


class Queue:
    """A queue whose answers a test gives."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[Sequence[str] | Exception] = asyncio.Queue()
        self.asked = 0
        self.pushed: list[str] = []
        self.is_open = True

    async def claim(self) -> Sequence[str]:
        self.asked += 1
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def push(self, claimed: Sequence[str]) -> bool:
        self.pushed += claimed if self.is_open else ()
        return self.is_open


def make_poll(queue: Queue) -> ClaimPoll[str]:
    poll: ClaimPoll[str] = ClaimPoll(queue.claim)
    poll.push = queue.push
    return poll


async def test_what_a_poll_claims_is_pushed() -> None:
    queue = Queue()
    poll = make_poll(queue)
    queue.answers.put_nowait(["a"])
    assert await poll.wait(60)
    assert queue.pushed == ["a"] and not poll.is_in_flight


async def test_a_poll_outlives_the_wait_for_it() -> None:
    """The next wait is for the same poll: a second one would claim for slots that are not there."""
    queue = Queue()
    poll = make_poll(queue)
    assert not await poll.wait(0)
    assert poll.is_in_flight
    queue.answers.put_nowait(["a"])
    assert await poll.wait(60)
    assert (queue.asked, queue.pushed) == (1, ["a"])


async def test_a_failed_poll_has_ended() -> None:
    queue = Queue()
    poll = make_poll(queue)
    queue.answers.put_nowait(BookClosed())
    assert await poll.wait(60)
    queue.answers.put_nowait(["a"])
    assert await poll.wait(60)
    assert queue.pushed == ["a"]


async def test_what_comes_after_the_stop_is_returned_by_the_drain() -> None:
    """One answer that the worker does not accept any more, and one that never comes."""
    queue = Queue()
    poll = make_poll(queue)
    queue.is_open = False
    queue.answers.put_nowait(["a"])
    assert await poll.wait(60)
    assert not await poll.wait(0)
    assert await poll.drain(0) == ["a"]
    assert await poll.drain(0) == []
