"""Tells of an outage when it begins and when it ends, and not of every call that fails meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from runtime.call.conditions import Failure

Answer = TypeVar("Answer")


class Outage:
    """Watches the calls of one method that several slots make again and again, whether they fail or not."""

    def __init__(self, kind: type[Failure] = Failure) -> None:
        """`kind` is what counts as no answer."""
        self._kind = kind
        self._asked = 0
        self._open: set[int] = set()
        """The numbers of the calls that are under way."""
        self._failed = 0
        self._last_of_outage = 0
        """The last call that was under way, or over, when one failed."""

    async def watch(
        self, call: Awaitable[Answer], began: Callable[[Failure], None], ended: Callable[[int], None]
    ) -> Answer:
        """The answer of a call. Tells its failure if it is the first, or how many there were after the last.

        An outage is over when a call is answered that was made after the last failure. Calls that were under
        way at that time are waited for: some of them may have been made in vain.
        """
        self._asked += 1
        number = self._asked
        self._open.add(number)
        try:
            answer = await call
        except self._kind as failure:
            self._failed += 1
            self._last_of_outage = self._asked
            if self._failed == 1:
                began(failure)
            raise
        finally:
            self._open.discard(number)
        if self._failed and min((number, *self._open)) > self._last_of_outage:
            count, self._failed = self._failed, 0
            ended(count)
        return answer
