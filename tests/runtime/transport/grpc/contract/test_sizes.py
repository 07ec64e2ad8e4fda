"""Sizes: messages up to the limit of the spec pass, and larger ones are refused, as sent or unpacked."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from generated.studio import messages as m
from runtime.call import Call
from runtime.call.conditions import Failure
from tests.runtime.transport.grpc.contract.support.carriers import (
    Sides,
    open_both,
    open_client,
    open_relay,
    plain_channel,
    plain_code,
    plain_method,
    plain_server,
    start_server,
    with_limits,
)

MOST = 100_000
SMALL = with_limits(message_bytes=MOST)
PACKINGS = (grpc.Compression.Gzip, grpc.Compression.Deflate)


def request_of(size: int) -> m.GetPrintRequest:
    """A request of so many bytes."""
    made = m.GetPrintRequest(film_id="x" * (size - 4 if size < 2**21 else size - 5))
    assert made.ByteSize() == size
    return made


async def fill(request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
    """Answer with a message of as many bytes as was asked for."""
    return m.GetPrintResponse(picture=b"x" * (int(request.film_id) - 4))


async def test_a_request_at_the_limit_passes(sides: Sides) -> None:
    """The limit is the largest size that is allowed."""

    async def handle(request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        return m.GetPrintResponse(minutes=len(request.film_id))

    async with open_both(sides, handle, system=SMALL) as (served, call):
        assert (await call("x" * (MOST - 4))).minutes == MOST - 4
        with pytest.raises(Failure) as caught:
            await call("x" * (MOST - 3))
        assert served.lines.read_back() == []
    assert caught.value.grpc == "RESOURCE_EXHAUSTED"
    assert caught.value.message == f"the message has {MOST + 1} bytes, and may have {MOST}"


@pytest.mark.parametrize("size", [MOST + 1, 2 * MOST])
async def test_a_request_beyond_the_limit_is_refused_with_a_line(carrier: str, size: int) -> None:
    """A client that does not know the limit learns it, the log has the call, and no handler sees it."""
    async with (
        start_server(carrier, fill, system=SMALL) as served,
        plain_channel(served.address) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await plain_method(channel)(request_of(size))
        (line,) = served.lines.read_back()
        assert await plain_code(plain_method(channel)(m.GetPrintRequest(film_id="100"))) == "OK"
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert caught.value.details() == f"the message has {size} bytes, and may have {MOST}"
    assert (line["event"], line["grpc_code"]) == ("rpc_error", "RESOURCE_EXHAUSTED")


async def test_a_request_far_beyond_the_limit_is_refused(carrier: str) -> None:
    """grpcio's library ends a message of more than twice the limit by itself, without a log line."""
    async with (
        start_server(carrier, fill, system=SMALL) as served,
        plain_channel(served.address) as channel,
    ):
        for size in (2 * MOST + 1, 20 * MOST):
            assert await plain_code(plain_method(channel)(request_of(size))) == "RESOURCE_EXHAUSTED"
        lines = served.lines.read_back("rpc_error")
        assert await plain_code(plain_method(channel)(m.GetPrintRequest(film_id="100"))) == "OK"
    assert len(lines) == (2 if carrier == "direct" else 0)


async def test_an_answer_at_the_limit_passes_and_a_larger_one_is_a_failure(sides: Sides) -> None:
    """The caller hears of it once, and so does the log."""
    async with open_both(sides, fill, system=SMALL) as (served, call):
        assert (await call(str(MOST))).ByteSize() == MOST
        with pytest.raises(Failure) as caught:
            await call(str(MOST + 1))
        (line,) = served.lines.read_back("rpc_error")
        assert (await call(str(MOST))).ByteSize() == MOST
    assert caught.value.grpc == "RESOURCE_EXHAUSTED"
    assert caught.value.message == f"the answer has {MOST + 1} bytes, and may have {MOST}"
    assert line["grpc_code"] == "RESOURCE_EXHAUSTED"


async def test_an_answer_of_another_server_beyond_the_limit_is_refused(carrier: str) -> None:
    """A client has the limit with any server."""

    async def answer(message: bytes, _context: Any) -> bytes:
        size = int(m.GetPrintRequest.FromString(message).film_id)
        return bytes(m.GetPrintResponse(picture=b"x" * (size - 4)).SerializeToString())

    async with (
        plain_server(answer) as (port, _),
        open_client(carrier, f"127.0.0.1:{port}", system=SMALL) as call,
    ):
        assert (await call(str(MOST))).ByteSize() == MOST
        with pytest.raises(Failure) as caught:
            await call(str(MOST + 1))
    assert caught.value.grpc == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize("packing", PACKINGS)
async def test_a_compressed_request_is_unpacked(carrier: str, packing: grpc.Compression) -> None:
    """A client of gRPC's own library may compress its requests."""
    async with (
        start_server(carrier) as served,
        open_relay(served.port) as relay,
        plain_channel(relay.address, compression=packing) as channel,
    ):
        text = "x" * 1_000_000
        assert (await plain_method(channel)(m.GetPrintRequest(film_id=text))).film_id == text
    assert relay.up < 100_000 < relay.down


@pytest.mark.parametrize("packing", PACKINGS)
async def test_a_compressed_answer_is_unpacked(carrier: str, packing: grpc.Compression) -> None:
    """A server of gRPC's own library may compress its responses."""

    async def answer(message: bytes, _context: Any) -> bytes:
        film_id = m.GetPrintRequest.FromString(message).film_id
        return bytes(m.GetPrintResponse(film_id=film_id).SerializeToString())

    text = "x" * 1_000_000
    async with (
        plain_server(answer, compression=packing) as (port, _),
        open_relay(port) as relay,
        open_client(carrier, relay.address) as call,
    ):
        assert (await call(text)).film_id == text
    assert relay.down < 100_000 < relay.up


@pytest.mark.parametrize("packing", PACKINGS)
async def test_a_compressed_request_counts_unpacked(carrier: str, packing: grpc.Compression) -> None:
    """A few bytes that decompress to more than the limit are refused by their decompressed size."""
    async with (
        start_server(carrier, system=SMALL) as served,
        plain_channel(served.address, compression=packing) as channel,
    ):
        for size in (MOST + 1, 50 * MOST):
            assert await plain_code(plain_method(channel)(request_of(size))) == "RESOURCE_EXHAUSTED"
        assert served.lines.read_back("rpc") == []
