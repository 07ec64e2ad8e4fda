"""Load: thousands of calls of a client of gRPC's own library, hundreds of them at a time."""

from __future__ import annotations

import asyncio

from generated.studio import messages as m
from runtime.call import Call
from tests.runtime.transport.grpc.contract.support.carriers import (
    PATIENCE_S,
    echo,
    plain_channel,
    plain_method,
    start_server,
)
from tests.support.deep import DEEP

CALLS = 20_000 if DEEP else 2_000
IN_FLIGHT = 500
HANDLER_S = 0.05


async def test_no_call_fails_under_load(carrier: str) -> None:
    """Each of them gets its own answer from slow handlers."""
    most = in_flight = 0

    async def handle(request: m.GetPrintRequest, call: Call) -> m.GetPrintResponse:
        nonlocal most, in_flight
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(HANDLER_S)
        in_flight -= 1
        return await echo(request, call)

    answered = 0
    async with start_server(carrier, handle) as served, plain_channel(served.address) as channel:
        method, numbers = plain_method(channel), iter(range(CALLS))

        async def call_on() -> None:
            nonlocal answered
            for number in numbers:
                answer = await method(m.GetPrintRequest(film_id=str(number)), timeout=PATIENCE_S)
                assert answer.film_id == str(number)
                answered += 1

        await asyncio.gather(*(call_on() for _ in range(IN_FLIGHT)))
    assert (answered, in_flight) == (CALLS, 0)
    assert most > 1
