"""Errors: a call that fails ends with the same status, condition and details whatever carries it."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2, status_pb2
from msgspec.structs import replace

from generated.studio import messages as m
from generated.studio.errors import Broken, FilmUnknown, FormInvalid
from runtime.call import Call
from runtime.call.conditions import CallFailed, Condition, Failure
from runtime.model.system import System
from runtime.transport.grpc.status_codes import STATUS_CODES
from tests.runtime.transport.grpc.contract.support.carriers import (
    METHOD,
    SYSTEM,
    Handle,
    Sides,
    open_both,
    open_client,
    plain_channel,
    plain_code,
    plain_method,
    reserve_port,
    start_server,
)

REQUEST = m.GetPrintRequest(film_id="x")


def condition_with(status: str, **more: Any) -> type[Condition]:
    """A condition of a spec that has some status."""
    named: dict[str, Any] = {"code": f"has_{status.lower()}", "grpc": status, "http": 500, "retry": "never"}
    return type(status.title(), (Condition,), {**named, **more})


CONDITIONS = {status: condition_with(status) for status in STATUS_CODES if status != "OK"}
BUSY = condition_with("RESOURCE_EXHAUSTED", code="busy", retry_after_s=7)


def with_conditions(*conditions: type[Condition]) -> System:
    """The system with some conditions more."""
    return replace(SYSTEM, conditions={**SYSTEM.conditions, **{each.code: each for each in conditions}})


def make_failing_handler(error: BaseException) -> Handle:
    """A handler that fails."""

    async def handle(_request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        raise error

    return handle


async def failure_of(call: Any) -> grpc.aio.AioRpcError:
    """How a call of gRPC's own library fails."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def details_of(error: grpc.aio.AioRpcError) -> tuple[Any, list[Any]]:
    """The google.rpc.Status of a failed call, and its details."""
    found = dict(error.trailing_metadata() or ())
    status: Any = status_pb2.Status.FromString(found["grpc-status-details-bin"])
    kinds = {
        each.DESCRIPTOR.full_name: each for each in (error_details_pb2.ErrorInfo, error_details_pb2.RetryInfo)
    }
    details = []
    for packed in status.details:
        detail: Any = kinds[packed.type_url.rpartition("/")[2]]()
        assert packed.Unpack(detail)
        details.append(detail)
    return status, details


async def test_every_status_arrives_with_its_condition(sides: Sides) -> None:
    """A condition of the spec is the same class at the caller, with its status and its words."""
    raised: list[Condition] = []

    async def handle(request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        raised.append(CONDITIONS[request.film_id](f"it is {request.film_id}, 100 % ähnlich"))
        raise raised[-1]

    async with open_both(sides, handle, system=with_conditions(*CONDITIONS.values())) as (served, call):
        for status, condition in CONDITIONS.items():
            with pytest.raises(condition) as caught:
                await call(status)
            assert (caught.value.grpc, caught.value.message) == (status, raised[-1].message)
            assert caught.value.origin == "ArchiveService"
        lines = served.lines.read_back("rpc_error")
    assert [line["grpc_code"] for line in lines] == list(CONDITIONS)


async def test_a_condition_that_a_client_does_not_know_is_its_status(sides: Sides) -> None:
    """A newer server may have conditions that an older client has not."""
    async with open_both(sides, make_failing_handler(BUSY("full"))) as (_, call):
        with pytest.raises(CallFailed) as caught:
            await call()
    assert (caught.value.grpc, caught.value.message) == ("RESOURCE_EXHAUSTED", "full")


async def test_any_client_can_read_the_condition(carrier: str) -> None:
    """Details are google.rpc's: the code, the system and the fields of the condition."""
    failure = FilmUnknown(film_id="7")
    async with (
        start_server(carrier, make_failing_handler(failure)) as served,
        plain_channel(served.address) as channel,
    ):
        error = await failure_of(plain_method(channel)(REQUEST))
    assert (error.code(), error.details()) == (grpc.StatusCode.NOT_FOUND, "no film 7")
    assert dict(error.trailing_metadata() or ())["charter-condition"] == "film_unknown"
    status, (info,) = details_of(error)
    assert (status.code, status.message) == (5, "no film 7")
    assert (info.reason, info.domain, dict(info.metadata)) == (
        "FILM_UNKNOWN",
        "studio",
        {"film_id": "7"},
    )


async def test_any_client_reads_when_to_retry(carrier: str) -> None:
    """A condition that says when to come back has that as a RetryInfo."""
    async with (
        start_server(carrier, make_failing_handler(BUSY("full", queue="q"))) as served,
        plain_channel(served.address) as channel,
    ):
        error = await failure_of(plain_method(channel)(REQUEST))
    _, (info, retry) = details_of(error)
    assert (info.reason, dict(info.metadata)) == ("BUSY", {"queue": "q"})
    assert (retry.retry_delay.seconds, retry.retry_delay.nanos) == (7, 0)


@pytest.mark.parametrize("letter", ["x", "ü", "𝄞"])
async def test_details_are_bounded(sides: Sides, letter: str) -> None:
    """However long a condition is and however it is spelled, it arrives, in headers that any client takes."""
    failure = BUSY(letter * 20_000, **{f"field_{number}": letter * 5_000 for number in range(40)})
    system = with_conditions(BUSY)
    async with open_both(sides, make_failing_handler(failure), system=system) as (served, call):
        with pytest.raises(BUSY) as caught:
            await call()
        assert caught.value.message.startswith(letter * 200)
        async with plain_channel(served.address) as channel:
            error = await failure_of(plain_method(channel)(REQUEST))
    _, details = details_of(error)
    assert details[0].reason == "BUSY"
    assert details[0].metadata["field_0"].startswith(letter * 50)
    sent = [(key, value) for key, value in error.trailing_metadata() or ()]
    size = sum(len(key) + len(value) * 4 // 3 + 32 for key, value in sent) + 3 * len(
        (error.details() or "").encode()
    )
    assert size < 8192


@pytest.mark.parametrize("data", [b"\x0a\x05ab", b"\x0a\x02\xff\xfe"], ids=["cut short", "no UTF-8"])
async def test_a_message_that_cannot_be_read_is_the_callers_fault(carrier: str, data: bytes) -> None:
    """It is the invalid request of the spec, with its details, and one line of the log."""
    async with start_server(carrier) as served, plain_channel(served.address) as channel:
        error = await failure_of(channel.unary_unary(METHOD.path)(data))
        (line,) = served.lines.read_back()
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert dict(error.trailing_metadata() or ())["charter-condition"] == FormInvalid.code
    _, (info,) = details_of(error)
    assert info.reason == "FORM_INVALID"
    assert (line["event"], line["grpc_code"], line["caller"]) == ("rpc_error", "INVALID_ARGUMENT", "desk")


async def test_an_unknown_method_is_unimplemented(carrier: str) -> None:
    """One line of the log names it, whether it is a method or a service that is not there."""
    async with start_server(carrier) as served, plain_channel(served.address) as channel:
        for path in (f"/{METHOD.service}/Nothing", "/no.such.Service/Nothing", "/nothing"):
            error = await failure_of(channel.unary_unary(path)(b""))
            assert (error.code(), error.details()) == (grpc.StatusCode.UNIMPLEMENTED, f"no method {path}")
        lines = served.lines.read_back()
    assert [(line["event"], line["grpc_code"]) for line in lines] == [("rpc_error", "UNIMPLEMENTED")] * 3


async def test_a_stream_of_an_unknown_method_is_unimplemented(carrier: str) -> None:
    """Whatever kind of call it is."""
    async with start_server(carrier) as served, plain_channel(served.address) as channel:
        talk: Any = channel.stream_stream("/no.such.Service/Talk")()
        error = await failure_of(talk.read())
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        assert len(served.lines.read_back("rpc_error")) == 1


async def test_a_fault_of_a_handler_is_unexpected(sides: Sides) -> None:
    """The caller learns an id and nothing else; the log has the fault under that id."""
    async with open_both(sides, make_failing_handler(RuntimeError("the secret is 42"))) as (served, call):
        with pytest.raises(Broken) as caught:
            await call(request_id="this one")
        (fault,) = served.lines.read_back("rpc_fault")
        (line,) = served.lines.read_back("rpc_error")
        assert await call_again(served.address) == "INTERNAL"
    assert caught.value.grpc == "INTERNAL"
    assert "this one" in caught.value.message
    assert "42" not in caught.value.message
    assert (fault["correlation_id"], "the secret is 42" in fault["detail"]) == ("this one", True)
    assert line["grpc_code"] == "INTERNAL"


async def call_again(address: str) -> str:
    """How the next call ends."""
    async with plain_channel(address) as channel:
        return await plain_code(plain_method(channel)(REQUEST))


async def test_a_call_without_a_listener_is_unavailable(carrier: str) -> None:
    """It names the address, and the caller may try again."""
    with reserve_port() as port:
        async with open_client(carrier, f"127.0.0.1:{port}") as call:
            with pytest.raises(Failure) as caught:
                await call()
    assert caught.value.grpc == "UNAVAILABLE"
    assert f"127.0.0.1:{port}" in caught.value.message


async def test_a_closed_channel_is_cancelled(carrier: str) -> None:
    """A call on it fails at once and does not open it again."""
    async with start_server(carrier) as served:
        async with open_client(carrier, served.address) as call:
            await call()
        with pytest.raises(Failure) as caught:
            await call()
    assert caught.value.grpc == "CANCELLED"
