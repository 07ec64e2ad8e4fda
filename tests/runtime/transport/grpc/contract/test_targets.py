"""Targets: the addresses of servers, and the behaviour of a client while there is none."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from generated.studio import messages as m
from runtime.call.conditions import Failure
from runtime.transport.grpc.channel import GrpcChannel
from tests.runtime.transport.grpc.contract.support.carriers import (
    COMPONENT,
    PRINCIPAL,
    SYSTEM,
    Gate,
    Served,
    Sides,
    open_client,
    plain_server,
    reserve_port,
    start_server,
)
from tests.support.eventually import eventually


@pytest.fixture
def socket_path() -> Iterator[str]:
    """Where a socket can be: its path has to be short."""
    with tempfile.TemporaryDirectory(prefix="grpc-") as folder:
        yield f"{folder}/socket"


async def answer(message: bytes, _context: Any) -> bytes:
    """Answer as the method does, with gRPC's own library."""
    film_id = m.GetPrintRequest.FromString(message).film_id
    return bytes(m.GetPrintResponse(film_id=film_id).SerializeToString())


async def test_host_and_port_are_a_target_of_both_carriers(sides: Sides) -> None:
    """By name and by address."""
    async with start_server(sides.server) as served:
        for host in ("localhost", "127.0.0.1"):
            async with open_client(sides.client, f"{host}:{served.port}") as call:
                assert (await call(host)).film_id == host


async def test_grpcio_looks_a_name_up(carrier: str) -> None:
    """As `dns:///host:port`, with a server of either carrier."""
    async with (
        start_server(carrier) as served,
        open_client("grpcio", f"dns:///localhost:{served.port}") as call,
    ):
        assert (await call("x")).film_id == "x"


@pytest.mark.parametrize("form", ["unix:{}", "unix://{}"])
async def test_grpcio_calls_through_a_socket_of_the_machine(socket_path: str, form: str) -> None:
    """As `unix:/path`."""
    async with (
        plain_server(answer, f"unix:{socket_path}"),
        open_client("grpcio", form.format(socket_path)) as call,
    ):
        assert (await call("x")).film_id == "x"


async def test_grpcio_calls_several_addresses_in_turn(carrier: str) -> None:
    """Each server has its share, and one that stops leaves its share to the others."""
    gates = [Gate() for _ in range(3)]
    for gate in gates:
        gate.open()
    async with AsyncExitStack() as servers:
        served: list[Served] = [
            await servers.enter_async_context(start_server(carrier, gate)) for gate in gates
        ]
        target = "ipv4:" + ",".join(each.address for each in served)
        async with open_client("grpcio", target) as call:

            async def reaches(count: int) -> None:
                """Call until so many servers are connected, and see that they then take turns."""
                async with asyncio.timeout(60):
                    while True:
                        before = [gate.begun for gate in gates]
                        for _ in range(4 * count):
                            await call()
                        shares = Counter(gate.begun - was for gate, was in zip(gates, before, strict=True))
                        if shares == Counter({4: count, **({0: 3 - count} if count < 3 else {})}):
                            return

            await reaches(3)
            await served[0].server.stop(60)
            await reaches(2)


@pytest.mark.parametrize(
    "address",
    [
        "dns:///localhost:50051",
        "unix:/tmp/socket",
        "ipv4:127.0.0.1:1,127.0.0.1:2",
        "localhost",
        ":1",
        "a:b",
        "",
    ],
)
def test_direct_refuses_other_targets(address: str) -> None:
    """The message names the address and the carrier that takes it."""
    with pytest.raises(ValueError, match="host:port") as caught:
        GrpcChannel(SYSTEM, address, PRINCIPAL, COMPONENT, carrier="direct")
    assert repr(address) in str(caught.value)
    assert "the carrier grpcio takes every target" in str(caught.value)


@pytest.mark.parametrize("address", ["localhost:1", "10.0.0.1:1", "[::1]:1", "::1:1", "a-b.example:65535"])
async def test_direct_takes_any_host_and_port(address: str) -> None:
    """Names and addresses of both kinds."""
    await GrpcChannel(SYSTEM, address, PRINCIPAL, COMPONENT, carrier="direct").close()


async def test_a_call_waits_for_a_server_that_starts_later(sides: Sides) -> None:
    """With wait_for_ready; without it a call fails at once."""
    with reserve_port() as port:
        async with (
            open_client(sides.client, f"127.0.0.1:{port}", wait_for_ready=True) as patient,
            open_client(sides.client, f"127.0.0.1:{port}") as hasty,
        ):
            waiting = asyncio.ensure_future(patient("later"))
            with pytest.raises(Failure) as caught:
                await hasty()
            assert caught.value.grpc == "UNAVAILABLE"
            assert not waiting.done()
            async with start_server(sides.server, port=port):
                assert (await waiting).film_id == "later"


async def test_a_call_waits_no_longer_than_its_deadline(carrier: str) -> None:
    """With wait_for_ready and without a listener."""
    with reserve_port() as port:
        async with open_client(carrier, f"127.0.0.1:{port}", wait_for_ready=True) as call:
            with pytest.raises(Failure) as caught:
                await call(seconds=0.05)
    assert caught.value.grpc == "DEADLINE_EXCEEDED"


async def test_a_client_finds_a_server_that_was_killed_again(sides: Sides) -> None:
    """The call in flight fails, and calls after the restart are answered."""
    gate = Gate()
    async with (
        start_server(sides.server, gate) as first,
        open_client(sides.client, first.address, wait_for_ready=True) as call,
    ):
        in_flight = asyncio.ensure_future(call())
        await eventually(lambda: gate.begun == 1)
        await first.server.stop(0)
        with pytest.raises(Failure):
            await in_flight
        async with start_server(sides.server, port=first.port):
            assert (await call("again")).film_id == "again"
