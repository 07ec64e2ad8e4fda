"""Calls through a proxy, which has connections of its own to a server and rules of its own about them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2, status_pb2

from generated.studio import messages as m
from generated.studio.errors import FilmUnknown
from runtime.call import Call
from runtime.transport.grpc.carrier import CARRIERS
from tests.runtime.transport.grpc.contract.support.carriers import (
    GROWING_S,
    PATIENCE_S,
    Gate,
    Handle,
    Relay,
    Served,
    echo,
    open_client,
    open_relay,
    plain_channel,
    plain_code,
    plain_method,
    start_server,
)
from tests.runtime.transport.grpc.contract.support.proxies import ASKED, start_proxy
from tests.support.eventually import eventually

REQUEST = m.GetPrintRequest(film_id="x")
IN_FLIGHT = 500


@pytest.fixture(params=ASKED)
def proxy(request: pytest.FixtureRequest) -> str:
    """A proxy by name."""
    chosen: str = request.param
    return chosen


@asynccontextmanager
async def behind(
    proxy: str, folder: Path, carrier: str, handle: Handle = echo
) -> AsyncIterator[tuple[str, Served]]:
    """The address of a proxy, and the server behind it."""
    async with start_server(carrier, handle) as served, start_proxy(proxy, folder, served.port) as address:
        yield address, served


async def test_calls_of_every_client_pass(proxy: str, carrier: str, tmp_path: Path) -> None:
    """Those of both carriers and of gRPC's own library, with small messages and large ones."""
    async with behind(proxy, tmp_path, carrier) as (address, _):
        for client in CARRIERS:
            async with open_client(client, address) as call:
                for text in ("x", "", "y" * 1_000_000):
                    assert (await call(text)).film_id == text
        async with plain_channel(address) as channel:
            assert (await plain_method(channel)(REQUEST)).film_id == "x"


async def test_errors_pass_with_their_details(proxy: str, carrier: str, tmp_path: Path) -> None:
    """A condition is the same class at a client of ours, and google.rpc's details at any other."""

    async def handle(request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        raise FilmUnknown(film_id=request.film_id)

    async with behind(proxy, tmp_path, carrier, handle) as (address, _):
        for client in CARRIERS:
            async with open_client(client, address) as call:
                with pytest.raises(FilmUnknown, match="no film ü"):
                    await call("ü")
        async with plain_channel(address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await plain_method(channel)(REQUEST)
            assert await plain_code(channel.unary_unary("/no.such/Method")(b"")) == "UNIMPLEMENTED"
    status: Any = status_pb2.Status.FromString(
        dict(caught.value.trailing_metadata() or ())["grpc-status-details-bin"]
    )
    info: Any = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, dict(info.metadata)) == ("FILM_UNKNOWN", {"film_id": "x"})


async def test_a_deadline_passes_on(proxy: str, carrier: str, tmp_path: Path) -> None:
    """The handler knows it, and is cancelled when it has passed."""
    gate = Gate()
    async with behind(proxy, tmp_path, carrier, gate) as (address, _), plain_channel(address) as channel:
        for seconds in GROWING_S:
            call = plain_method(channel)(REQUEST, timeout=seconds)
            assert await plain_code(call) == "DEADLINE_EXCEEDED"
            if gate.begun:
                break
        await eventually(lambda: gate.begun and gate.cancelled == gate.begun)
    assert gate.calls[0].deadline is not None


async def test_a_call_that_is_given_up_is_cancelled(proxy: str, carrier: str, tmp_path: Path) -> None:
    """The proxy cancels the call at the server, and the handler ends."""
    gate = Gate()
    async with behind(proxy, tmp_path, carrier, gate) as (address, _), plain_channel(address) as channel:
        call = plain_method(channel)(REQUEST)
        begun = asyncio.ensure_future(plain_code(call))
        await eventually(lambda: gate.begun == 1)
        call.cancel()
        await eventually(lambda: gate.cancelled == 1)
        with pytest.raises(asyncio.CancelledError):
            await begun


async def test_hundreds_of_calls_are_in_flight(proxy: str, carrier: str, tmp_path: Path) -> None:
    """All have begun before the first is answered, over however many connections the proxy makes."""
    gate = Gate()
    async with behind(proxy, tmp_path, carrier, gate) as (address, _), plain_channel(address) as channel:
        method = plain_method(channel)
        calls = [asyncio.ensure_future(plain_code(method(REQUEST))) for _ in range(IN_FLIGHT)]
        await eventually(lambda: gate.begun == IN_FLIGHT)
        gate.open()
        assert await asyncio.gather(*calls) == ["OK"] * IN_FLIGHT


async def test_large_headers_of_one_client_do_not_hurt_another(
    proxy: str, carrier: str, tmp_path: Path
) -> None:
    """A call of another client is in flight behind the same proxy, and goes on, as does the next one."""
    gate = Gate()

    async def handle(request: m.GetPrintRequest, call: Call) -> m.GetPrintResponse:
        # Whether the large headers arrive as such is up to the proxy, and how it packs them.
        return await (echo if request.film_id == "guilty" else gate)(request, call)

    async with (
        behind(proxy, tmp_path, carrier, handle) as (address, _),
        plain_channel(address) as guilty,
        plain_channel(address) as innocent,
    ):
        before = asyncio.ensure_future(plain_code(plain_method(innocent)(REQUEST)))
        await eventually(lambda: gate.begun == 1)
        for _ in range(5):
            large = (("x-large", "".join(chr(33 + number % 90) for number in range(20_000))),)
            request = m.GetPrintRequest(film_id="guilty")
            await plain_code(plain_method(guilty)(request, metadata=large, timeout=PATIENCE_S))
        after = asyncio.ensure_future(plain_code(plain_method(innocent)(REQUEST)))
        await eventually(lambda: gate.begun == 2)
        gate.open()
        assert [await before, await after] == ["OK", "OK"]


@asynccontextmanager
async def in_turn(
    proxy: str, folder: Path, carrier: str, old: Gate, new: Gate
) -> AsyncIterator[tuple[Any, Served, Relay, int]]:
    """A client of a server behind a proxy, and the port of the one that takes its place."""
    async with (
        start_server(carrier, old) as first,
        start_server(carrier, new) as second,
        open_relay(first.port) as relay,
        start_proxy(proxy, folder, relay.port) as address,
        plain_channel(address) as channel,
    ):
        yield plain_method(channel), first, relay, second.port


async def test_a_kill_costs_the_calls_in_flight_alone(proxy: str, carrier: str, tmp_path: Path) -> None:
    """Later calls go to the next server."""
    old, new = Gate(), Gate()
    new.open()
    async with in_turn(proxy, tmp_path, carrier, old, new) as (method, first, relay, second):
        lost = [asyncio.ensure_future(plain_code(method(REQUEST))) for _ in range(50)]
        await eventually(lambda: old.begun == 50)
        relay.lead_to(second)
        await first.server.stop(0)
        assert "OK" not in await asyncio.gather(*lost)
        # The proxy has heard of the end of its connections.
        await eventually(lambda: relay.closed == relay.connections)
        calls = await asyncio.gather(*(plain_code(method(REQUEST)) for _ in range(50)))
    assert calls == ["OK"] * 50


async def test_a_graceful_stop_costs_no_call(proxy: str, carrier: str, tmp_path: Path) -> None:
    """Calls that have begun are answered, and none fails while others are made.

    Until a client has read its GOAWAY grpcio's library refuses calls without beginning them, and it closes a
    connection at once behind its last answer, which HAProxy may then not pass on.
    """
    old, new = Gate(), Gate()
    new.open()
    async with in_turn(proxy, tmp_path, carrier, old, new) as (method, first, relay, second):
        taken = [asyncio.ensure_future(plain_code(method(REQUEST))) for _ in range(50)]
        await eventually(lambda: old.begun == 50)
        relay.lead_to(second)
        stopping = asyncio.ensure_future(first.server.stop(PATIENCE_S))
        later: list[asyncio.Future[str]] = []

        def has_switched() -> bool:
            """Make one call more, until one has met the next server."""
            later.append(asyncio.ensure_future(plain_code(method(REQUEST))))
            return new.begun > 0

        await eventually(has_switched)
        old.open()
        answered = Counter(await asyncio.gather(*taken))
        await stopping
        later += [asyncio.ensure_future(plain_code(method(REQUEST))) for _ in range(50)]
        ended = Counter(await asyncio.gather(*later))
    assert (old.cancelled, new.cancelled) == (0, 0)
    if carrier == "direct":
        assert ended.total() == ended["OK"]
    if carrier == "direct" or proxy != "haproxy":
        assert answered == {"OK": 50}
