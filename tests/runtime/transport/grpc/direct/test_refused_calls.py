"""Calls that no method answers: the status that their client gets, and the one line logged of each."""

from __future__ import annotations

import gzip
import hashlib
from typing import Any

import pytest

from generated.studio import messages as m
from runtime.call import Call
from runtime.observe.metrics import Metrics
from runtime.transport.grpc.direct import messages as grpc_messages
from tests.runtime.hand_world import Lines
from tests.runtime.transport.grpc.direct.support import raw_peer as raw
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import (
    METHOD,
    GrpcResponse,
    call_raw,
    frame_message,
    serve_system,
    system_with,
)

PATH = METHOD.path.encode()
OK, INVALID, LATE, DENIED, EXHAUSTED, UNIMPLEMENTED, UNAUTHENTICATED = 0, 3, 4, 7, 8, 12, 16
TOKEN = "a secret"
TOKENS = {"desk": hashlib.sha256(TOKEN.encode()).digest(), "printer": hashlib.sha256(b"printer").digest()}
GOOD = frame_message(m.GetPrintRequest(film_id="x").SerializeToString())
NO_UTF8 = frame_message(b"\x0a\x02\xff\xfe")
NO_MESSAGE = frame_message(b"\xff\xff\xff")


async def find_print(_request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
    return m.GetPrintResponse(found=True)


def bearer(token: str, scheme: str = "Bearer") -> tuple[bytes, bytes]:
    return (b"authorization", f"{scheme} {token}".encode())


async def ask(
    lines: Lines, path: bytes, body: bytes | None, *more: tuple[bytes, bytes], **changed: Any
) -> GrpcResponse:
    """How one call ended; the next one on its connection is answered."""
    system = system_with(**changed)
    async with (
        serve_system(find_print, system, anonymous=None, lines=lines, tokens=TOKENS) as (port, _),
        raw.connect(port) as client,
    ):
        ended = await call_raw(client, 1, path, body, (b"x-request-id", b"id-1"), *more)
        assert (await call_raw(client, 3, PATH, GOOD, bearer(TOKEN))).status == OK
    return ended


@pytest.mark.req("TQ-147", "TQ-165")
@pytest.mark.parametrize(
    ("path", "body", "status", "code", "method"),
    [
        (PATH, NO_MESSAGE, INVALID, "INVALID_ARGUMENT", str(METHOD)),
        (PATH, NO_UTF8, INVALID, "INVALID_ARGUMENT", str(METHOD)),
        (PATH, GOOD + GOOD, INVALID, "INVALID_ARGUMENT", str(METHOD)),
        (PATH, None, INVALID, "INVALID_ARGUMENT", str(METHOD)),
        (PATH, frame_message(bytes(5000)), EXHAUSTED, "RESOURCE_EXHAUSTED", str(METHOD)),
        (b"/a.b.Service/None", GOOD, UNIMPLEMENTED, "UNIMPLEMENTED", "Service.None"),
        (b"nonsense", GOOD, UNIMPLEMENTED, "UNIMPLEMENTED", "nonsense"),
        (b"/grpc.health.v1.Health/Check", NO_MESSAGE, INVALID, "INVALID_ARGUMENT", "Health.Check"),
    ],
    ids=["no message", "no UTF-8", "two", "none", "too make_body", "unknown", "no path", "health"],
)
async def test_a_call_that_no_method_answers_is_one_line(
    path: bytes, body: bytes | None, status: int, code: str, method: str
) -> None:
    lines = Lines()
    ended = await ask(lines, path, body, bearer(TOKEN), message_bytes=4000)
    (line,) = lines.read_back()
    assert ended.status == status
    assert (line["event"], line["level"]) == ("rpc_error", "WARNING")
    assert (line["method"], line["grpc_code"], line["caller"]) == (method, code, "desk")
    assert (line["request_id"], line["message"]) == ("id-1", ended.message)


@pytest.mark.req("TQ-165")
async def test_an_answer_that_is_too_large_is_one_refusal() -> None:
    """It is counted and logged once, by the status that its caller got, and not as an answer before that."""
    lines, metrics = Lines(), Metrics()

    async def grow(request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        return m.GetPrintResponse(picture=bytes(5000 if request.film_id == "x" else 10))

    system = system_with(message_bytes=4000)
    async with (
        serve_system(grow, system, lines=lines, metrics=metrics) as (port, _),
        raw.connect(port) as client,
    ):
        ended = await call_raw(client, 1, PATH, GOOD, (b"x-request-id", b"id-1"))
        fits = frame_message(m.GetPrintRequest(film_id="y").SerializeToString())
        assert (await call_raw(client, 3, PATH, fits)).status == OK
    assert (ended.status, ended.message) == (EXHAUSTED, "the answer has 5003 bytes, and may have 4000")
    counted = {
        (sample.labels["code"], sample.labels["caller"]): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "charter_calls_total"
    }
    assert counted == {("RESOURCE_EXHAUSTED", "desk"): 1, ("OK", "desk"): 1}
    (line,) = lines.read_back("rpc_error")
    assert (line["method"], line["grpc_code"]) == (str(METHOD), "RESOURCE_EXHAUSTED")
    assert (line["request_id"], line["message"]) == ("id-1", ended.message)


@pytest.mark.req("TQ-165")
async def test_a_request_that_is_not_grpc_is_one_log_line() -> None:
    lines = Lines()
    async with serve_system(find_print, lines=lines) as (port, _), raw.connect(port) as client:
        client.send(
            raw.frame(raw.HEADERS, raw.END_BOTH, 1, client.encode(PATH, (b"content-type", b"text/html")))
        )
        assert (await client.read_response(1)).headers[b":status"] == b"415"
        assert (await call_raw(client, 3, PATH, GOOD, (b"grpc-timeout", b"0S"))).status == LATE
    unknown, late = lines.read_back("rpc_error")
    assert (unknown["grpc_code"], unknown["message"]) == (
        "UNKNOWN",
        "HTTP status 415: the content type is not that of gRPC",
    )
    assert late["grpc_code"] == "DEADLINE_EXCEEDED"


@pytest.mark.req("TQ-165")
async def test_headers_that_are_too_large_are_one_line() -> None:
    """Other calls of the connection, as behind a proxy, go on."""
    lines = Lines()
    ended = await ask(lines, PATH, GOOD, bearer(TOKEN), (b"x-large", b"x" * 16_300))
    assert (ended.status, ended.message) == (EXHAUSTED, "the headers have more than 16384 bytes")
    (line,) = lines.read_back()
    assert (line["method"], line["grpc_code"]) == (str(METHOD), "RESOURCE_EXHAUSTED")
    assert (line["caller"], line["message"]) == ("desk", ended.message)


@pytest.mark.req("TQ-165")
async def test_a_message_that_does_not_come_in_time_is_one_line() -> None:
    lines = Lines()
    async with serve_system(find_print, lines=lines) as (port, _), raw.connect(port) as client:
        usual = ((b"content-type", b"application/grpc"), (b"grpc-timeout", b"1m"))
        client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 1, client.encode(PATH, *usual)))
        client.send(raw.frame(raw.DATA, 0, 1, GOOD[:3]))
        assert (await client.read_response(1)).headers[b"grpc-status"] == b"4"
    (line,) = lines.read_back("rpc_error")
    assert (line["method"], line["grpc_code"]) == (str(METHOD), "DEADLINE_EXCEEDED")


@pytest.mark.req("TQ-165")
async def test_a_call_that_is_cut_off_before_its_method_began_is_one_line() -> None:
    """A deadline that is over, or a server that stops, in the very turn in which the message came."""
    lines = Lines()

    async def never(_request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        raise AssertionError("the method has begun")

    async with serve_system(never, lines=lines) as (port, server), raw.connect(port) as client:
        calls = server._calls
        begin = calls._begin_unary

        def begin_and_cut(*given: Any) -> None:
            begin(*given)
            for task in calls.tasks:
                task.cancel()

        calls._begin_unary = begin_and_cut  # type: ignore[assignment, method-assign]
        assert (await call_raw(client, 1, PATH, GOOD)).message == "the call was cancelled"
    (line,) = lines.read_back("rpc_error")
    assert (line["method"], line["grpc_code"]) == (str(METHOD), "CANCELLED")


@pytest.mark.req("TQ-165")
async def test_a_caller_without_proof_gets_no_details_of_its_message() -> None:
    lines = Lines()
    ended = await ask(lines, PATH, NO_MESSAGE)
    assert ended.status == UNAUTHENTICATED
    assert "GetPrintRequest" not in ended.message
    denied, line = lines.read_back()
    assert (denied["event"], line["event"], line["grpc_code"]) == (
        "call_denied",
        "rpc_error",
        "UNAUTHENTICATED",
    )


async def test_nothing_is_decompressed_before_its_caller_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be work, and a guard refuses the caller anyway, with its own words."""
    decompressed: list[bytes] = []
    decompress = grpc_messages._decompress

    def count(packed: bytes, *given: Any) -> bytes:
        decompressed.append(packed)
        return bytes(decompress(packed, *given))

    monkeypatch.setattr(grpc_messages, "_decompress", count)
    packed = gzip.compress(m.GetPrintRequest(film_id="x").SerializeToString())
    body, encoding = frame_message(packed, 1), (b"grpc-encoding", b"gzip")
    for proof, status in (
        ((), UNAUTHENTICATED),
        ((bearer("another"),), UNAUTHENTICATED),
        ((bearer("printer"),), DENIED),
    ):
        assert (await ask(Lines(), PATH, body, encoding, *proof)).status == status
    assert decompressed == []
    assert (await ask(Lines(), PATH, body, encoding, bearer(TOKEN))).status == OK
    assert decompressed == [packed]


async def test_nothing_is_kept_before_its_caller_is_proven() -> None:
    """The message of such a caller is thrown away as it comes; its guard answers when all of it was sent."""
    lines = Lines()
    async with (
        serve_system(find_print, anonymous=None, lines=lines, tokens=TOKENS) as (port, server),
        raw.connect(port) as client,
    ):
        said = ((b"content-type", b"application/grpc"),)
        part, parts = bytes(16_000), 100
        for number, proof, status in ((1, (), UNAUTHENTICATED), (3, (bearer(TOKEN),), INVALID)):
            client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, number, client.encode(PATH, *said, *proof)))
            client.send(raw.frame(raw.DATA, 0, number, frame_message(part * parts)[:16_000]))
            client.send(raw.frame(raw.DATA, 0, number, part) * (parts - 1))
            await client.ping()
            (connection,) = server._calls.connections
            assert connection.buffered_request_bytes == (0 if number == 1 else len(part) * parts)
            # Which is no whole message; only callers whom the guard admits get to know that.
            client.send(raw.frame(raw.DATA, raw.END_STREAM, number))
            assert (await client.read_response(number)).headers[b"grpc-status"] == b"%d" % status
    denied, *_ = lines.read_back()
    assert denied["event"] == "call_denied"


async def test_a_question_about_health_has_a_few_bytes() -> None:
    """Anyone may ask it."""
    async with (
        serve_system(find_print, anonymous=None, tokens=TOKENS) as (port, _),
        raw.connect(port) as client,
    ):
        check = b"/grpc.health.v1.Health/Check"
        client.send(
            raw.frame(
                raw.HEADERS,
                raw.END_HEADERS,
                1,
                client.encode(check, (b"content-type", b"application/grpc")),
            )
        )
        client.send(raw.frame(raw.DATA, 0, 1, frame_message(bytes(5000))[:1000]))
        assert (await client.read_response(1)).headers[b"grpc-status"] == b"%d" % EXHAUSTED
        packed = frame_message(gzip.compress(bytes(5000)), 1)
        assert (await call_raw(client, 3, check, packed, (b"grpc-encoding", b"gzip"))).status == EXHAUSTED
        assert (await call_raw(client, 5, check, frame_message(b""))).status == OK


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
async def test_the_scheme_of_a_token_is_taken_in_any_case(scheme: str) -> None:
    assert (await ask(Lines(), PATH, GOOD, bearer(TOKEN, scheme))).status == OK


@pytest.mark.parametrize("second", [TOKEN, "printer", "unknown"])
async def test_two_authorization_headers_prove_nothing(second: str) -> None:
    """Whatever they say: a proxy and a node might each take another one of them."""
    lines = Lines()
    ended = await ask(lines, PATH, GOOD, bearer(TOKEN), bearer(second))
    assert ended.status == UNAUTHENTICATED
    assert "more than one authorization header" in ended.message
    assert "more than one authorization header" in lines.read_back("call_denied")[0]["message"]
