"""gRPC over TLS: who may connect, and who they are by their certificates."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from generated.studio import messages as m
from runtime.call import Call
from runtime.certs import Authority, Issued
from runtime.transport import tls, tls_listener
from runtime.transport.grpc.direct.http2 import keepalive
from runtime.transport.tls import Credentials, server_name
from tests.runtime.hand_world import Lines
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import get_print, serve_system, system_with

REQUEST = m.GetPrintRequest(film_id="x")
AUTHORITY = Authority("studio")
NAME = server_name("studio", "archive")
SERVER = AUTHORITY.issue("archive", [NAME])
OWN = Credentials(AUTHORITY.certificate, SERVER.certificate, SERVER.key)


@asynccontextmanager
async def open_tls_channel(port: int, issued: Issued | None = None) -> AsyncIterator[grpc.aio.Channel]:
    """A client with a certificate or without."""
    shown = grpc.ssl_channel_credentials(
        AUTHORITY.certificate, issued.key if issued else None, issued.certificate if issued else None
    )
    options = [("grpc.enable_retries", 0), ("grpc.ssl_target_name_override", NAME)]
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", shown, options) as client:
        yield client


@asynccontextmanager
async def open_tls_method(port: int, issued: Issued | None = None) -> AsyncIterator[Any]:
    """The method, for such a client."""
    async with open_tls_channel(port, issued) as client:
        yield get_print(client)


class Callers:
    """A handler that writes down who calls."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def __call__(self, _request: m.GetPrintRequest, call: Call) -> m.GetPrintResponse:
        self.seen.append(call.caller)
        return m.GetPrintResponse(found=True)


async def code(call: Any) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_a_caller_is_who_the_certificate_says() -> None:
    """By its one name in the system; it is permitted what that name is."""
    callers = Callers()
    async with serve_system(callers, tls=OWN, anonymous=None) as (port, _):
        for name, expected in (
            ("desk", grpc.StatusCode.OK),
            ("printer", grpc.StatusCode.PERMISSION_DENIED),
            ("stranger", grpc.StatusCode.UNAUTHENTICATED),
        ):
            async with open_tls_method(port, AUTHORITY.issue(name)) as method:
                assert await code(method(REQUEST)) is expected
    assert callers.seen == ["desk"]


@pytest.mark.req("CH-65", "TQ-165")
async def test_a_caller_without_a_certificate_is_unauthenticated() -> None:
    """The transport accepts it, the guard refuses it, and the log has the reason."""
    callers, lines = Callers(), Lines()
    async with serve_system(callers, tls=OWN, anonymous=None, lines=lines) as (port, _):
        async with open_tls_method(port) as method:
            assert await code(method(REQUEST)) is grpc.StatusCode.UNAUTHENTICATED
        async with open_tls_method(port, AUTHORITY.issue("desk")) as method:
            assert await code(method(REQUEST)) is grpc.StatusCode.OK
    assert callers.seen == ["desk"]
    denied, line = lines.read_back()
    assert (denied["event"], line["event"], line["grpc_code"]) == (
        "call_denied",
        "rpc_error",
        "UNAUTHENTICATED",
    )
    assert "no certificate" in denied["message"]


async def test_where_all_have_to_prove_themselves_health_and_reflection_do_not_answer_others() -> None:
    """They are refused by a status in place of a failed handshake."""
    lines = Lines()
    async with serve_system(Callers(), tls=OWN, anonymous=None, lines=lines) as (port, _):
        for issued, expected in (
            (None, grpc.StatusCode.UNAUTHENTICATED),
            (AUTHORITY.issue("desk"), grpc.StatusCode.OK),
        ):
            async with open_tls_channel(port, issued) as opened:
                client: Any = opened
                health: Any = health_pb2_grpc.HealthStub(client)
                assert await code(health.Check(health_pb2.HealthCheckRequest())) is expected
                watch = health.Watch(health_pb2.HealthCheckRequest())
                assert await code(watch.__aiter__().__anext__()) is expected
                asked = reflection_pb2.ServerReflectionRequest(list_services="*")
                stub: Any = reflection_pb2_grpc.ServerReflectionStub(client)
                listing = stub.ServerReflectionInfo(iter([asked]))
                assert await code(listing.__aiter__().__anext__()) is expected
        refused = [line for line in lines.read_back("rpc_error") if line["grpc_code"] == "UNAUTHENTICATED"]
    assert [line["method"] for line in refused] == [
        "Health.Check",
        "Health.Watch",
        "ServerReflection.ServerReflectionInfo",
    ]


async def test_a_certificate_of_another_authority_is_no_connection_and_a_line() -> None:
    """A bad proof cannot be answered within the protocol, so the log says why."""
    callers, lines = Callers(), Lines()
    async with serve_system(callers, tls=OWN, anonymous=None, lines=lines) as (port, _):
        async with open_tls_method(port, Authority("studio").issue("desk")) as method:
            assert await code(method(REQUEST)) is grpc.StatusCode.UNAVAILABLE
        line = lines.read_back("handshake_failed")[0]
        assert (line["level"], line["message"].partition(" good: ")[0]) == (
            "WARNING",
            "a client was refused: its certificate is not",
        )
        assert line["peer"].startswith("127.0.0.1:")
    assert callers.seen == []


async def test_where_anyone_may_call_a_certificate_still_counts() -> None:
    """Without one a caller is anonymous; with one it is who it says, and a bad one is no connection."""
    callers = Callers()
    async with serve_system(callers, tls=OWN, anonymous="desk", open_to_anyone=True) as (port, _):
        for issued, expected in (
            (None, grpc.StatusCode.OK),
            (AUTHORITY.issue("desk"), grpc.StatusCode.OK),
            (AUTHORITY.issue("printer"), grpc.StatusCode.PERMISSION_DENIED),
            (AUTHORITY.issue("stranger"), grpc.StatusCode.UNAUTHENTICATED),
            (Authority("studio").issue("desk"), grpc.StatusCode.UNAVAILABLE),
        ):
            async with open_tls_method(port, issued) as method:
                assert await code(method(REQUEST)) is expected
    assert callers.seen == ["desk", "desk"]


async def test_a_handshake_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timer is left of a handshake that never came."""
    monkeypatch.setattr(keepalive, "_GRACE_S", 0.0)
    contexts: list[dict[str, Any]] = []
    lines = Lines()
    async with serve_system(Callers(), tls=OWN, anonymous=None, lines=lines) as (port, server):
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: contexts.append(context))
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises(ConnectionError):
                    # An alert and the end, or only the end.
                    while await reader.read(100):
                        pass
                    raise ConnectionError
            writer.close()
        loop.set_exception_handler(None)
    assert len(lines.read_back("handshake_failed")) == 3
    assert [each for each in contexts if isinstance(each.get("exception"), AttributeError)] == []
    assert server._calls.connections == {}


async def test_handshakes_that_do_not_end_count_as_connections() -> None:
    """One more client is closed at once, whether those before it have finished their handshakes or not."""
    desk = AUTHORITY.issue("desk")
    async with serve_system(Callers(), system_with(connections=2), tls=OWN, anonymous=None) as (
        port,
        server,
    ):
        assert server._secured is not None
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        async with asyncio.timeout(PATIENCE_S):
            while len(server._secured._handshakes) < 2:
                await asyncio.sleep(0)
            reader, another = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
        another.close()
        for _, writer in silent:
            writer.transport.abort()
        async with asyncio.timeout(PATIENCE_S):
            while server._secured._handshakes:
                await asyncio.sleep(0)
        async with open_tls_method(port, desk) as method:
            assert await code(method(REQUEST)) is grpc.StatusCode.OK


async def test_a_handshake_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client is closed, and its place is free."""
    monkeypatch.setattr(tls_listener, "_HANDSHAKE_SECONDS", 0.05)
    lines = Lines()
    async with serve_system(Callers(), tls=OWN, anonymous=None, lines=lines) as (port, server):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            assert server._secured is not None
            while server._secured._handshakes:
                await asyncio.sleep(0)
        writer.close()
    assert len(lines.read_back("handshake_failed")) == 1


async def test_a_large_answer_over_tls() -> None:
    """Of many records, to a client that takes it in pieces."""
    output = bytes(range(256)) * 8000

    async def handle(_request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        return m.GetPrintResponse(found=True, picture=output)

    desk = AUTHORITY.issue("desk")
    async with (
        serve_system(handle, tls=OWN, anonymous=None) as (port, _),
        open_tls_method(port, desk) as method,
    ):
        assert (await method(REQUEST)).picture == output


async def test_old_versions_are_not_spoken_and_the_protocol_is_agreed_on() -> None:
    """A client learns in the handshake that this is HTTP/2."""
    async with serve_system(Callers(), tls=OWN, anonymous="desk", open_to_anyone=True) as (port, _):
        context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        context.set_alpn_protocols(["http/1.1", "h2"])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAME)
        shown = writer.get_extra_info("ssl_object")
        assert shown.selected_alpn_protocol() == "h2"
        assert shown.version() in ("TLSv1.2", "TLSv1.3")
        writer.transport.abort()


def test_a_server_needs_a_certificate() -> None:
    """One that could not prove itself is not started."""
    with pytest.raises(ValueError, match="needs a certificate"):
        tls.Credentials(AUTHORITY.certificate).for_server()
