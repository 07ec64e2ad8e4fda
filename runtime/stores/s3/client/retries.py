"""Try a request again that the store has not carried out, a few times and with pauses."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from runtime.stores.s3.client.errors import Away

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
_Answer = TypeVar("_Answer")


async def retry(tries: int, failures: type[Away], ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
    """Ask until there is an answer, or another failure than these, or the last try has failed."""
    for number in range(1, tries):
        try:
            return await ask()
        except failures:
            longest = min(FIRST_PAUSE_S * 2 ** (number - 1), LONGEST_PAUSE_S)
            await asyncio.sleep(random.uniform(longest / 2, longest))
    return await ask()
