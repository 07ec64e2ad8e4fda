"""Detect outages: report their begin and end, and not every call that fails meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from runtime.call.conditions import Failure

Answer = TypeVar("Answer")


class Outage:
    """Watch the calls of one method, which several slots repeat, and detect when it is unavailable."""

    def __init__(self, failure_type: type[Failure] = Failure) -> None:
        """`failure_type` is the failure that counts as no response."""
        self._failure_type = failure_type
        self._call_count = 0
        self._in_flight: set[int] = set()
        """The numbers of the calls in flight."""
        self._failure_count = 0
        self._last_call_of_outage = 0
        """The number of the latest call that had been made when one failed."""

    async def watch(
        self, call: Awaitable[Answer], began: Callable[[Failure], None], ended: Callable[[int], None]
    ) -> Answer:
        """Await a call. Report its failure if it begins an outage, or the failure count if it ends one.

        An outage is over when a call gets a response that was made after the last failure, and no call that
        was in flight at that failure is left: some of those may still fail.
        """
        self._call_count += 1
        number = self._call_count
        self._in_flight.add(number)
        try:
            response = await call
        except self._failure_type as failure:
            self._failure_count += 1
            self._last_call_of_outage = self._call_count
            if self._failure_count == 1:
                began(failure)
            raise
        finally:
            self._in_flight.discard(number)
        if self._failure_count and min((number, *self._in_flight)) > self._last_call_of_outage:
            count, self._failure_count = self._failure_count, 0
            ended(count)
        return response
