"""Retries of requests that the store has not carried out, with backoff."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from runtime.stores.s3.client.errors import Away

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
Result = TypeVar("Result")


async def retry(tries: int, failures: type[Away], send: Callable[[], Awaitable[Result]]) -> Result:
    """Send a request with exponential backoff and jitter, until it succeeds or its last try fails."""
    for number in range(1, tries):
        try:
            return await send()
        except failures:
            longest = min(FIRST_PAUSE_S * 2 ** (number - 1), LONGEST_PAUSE_S)
            await asyncio.sleep(random.uniform(longest / 2, longest))
    return await send()
