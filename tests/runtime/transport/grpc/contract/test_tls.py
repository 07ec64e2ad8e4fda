"""TLS and identity: who may connect, who a caller is, and how certificates are renewed."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from generated.studio import messages as m
from runtime.call.conditions import Failure
from runtime.certs import Authority, Issued
from runtime.transport.tls import Credentials, server_name
from tests.runtime.transport.grpc.contract.support.carriers import (
    COMPONENT,
    Gate,
    Sides,
    open_client,
    plain_code,
    plain_method,
    start_server,
)

NAME = server_name("studio", COMPONENT)
AUTHORITY, OTHER = Authority("studio"), Authority("studio")
REQUEST = m.GetPrintRequest(film_id="x")
TOKENS = {"desk": hashlib.sha256(b"secret").digest(), "printer": hashlib.sha256(b"other").digest()}


def credentials(principal: str, authority: Authority = AUTHORITY) -> Credentials:
    """The credentials of a node with a certificate for a principal."""
    issued = authority.issue(principal, [NAME])
    return Credentials(AUTHORITY.certificate, issued.certificate, issued.key)


OWN = credentials(COMPONENT)
NOBODY = Credentials(AUTHORITY.certificate)


@pytest.fixture
def callers() -> Gate:
    """A handler that writes down who calls."""
    gate = Gate()
    gate.open()
    return gate


async def status_of(call: Any) -> str:
    """The status with which a call of a carrier ends."""
    try:
        await call
    except Failure as failure:
        return failure.grpc
    return "OK"


async def status_as(client: str, address: str, tls: Credentials | None, token: str | None = None) -> str:
    """The status of a call on a connection of its own."""
    async with open_client(client, address, tls=tls, token=token) as call:
        return await status_of(call(seconds=20))


async def test_a_caller_is_who_its_certificate_says(sides: Sides, callers: Gate) -> None:
    """By its one spiffe URI of the system; what that principal may not call is denied."""
    async with start_server(sides.server, callers, tls=OWN, anonymous=None) as served:
        for principal, expected in (
            ("desk", "OK"),
            ("printer", "PERMISSION_DENIED"),
            ("stranger", "UNAUTHENTICATED"),
        ):
            assert await status_as(sides.client, served.address, credentials(principal)) == expected
        denied = served.lines.read_back("call_denied")
    assert [each.caller for each in callers.calls] == ["desk"]
    assert [line.get("caller") for line in denied] == ["printer", None]


async def test_a_caller_without_a_certificate_is_refused(sides: Sides, callers: Gate) -> None:
    """direct lets it in, and its guard says why; grpcio's listener insists on one in the handshake."""
    async with start_server(sides.server, callers, tls=OWN, anonymous=None) as served:
        expected = "UNAUTHENTICATED" if sides.server == "direct" else "UNAVAILABLE"
        assert await status_as(sides.client, served.address, NOBODY) == expected
        assert await status_as(sides.client, served.address, credentials("desk")) == "OK"
    assert [each.caller for each in callers.calls] == ["desk"]


async def test_a_listener_that_is_open_to_anyone_lets_anonymous_in(sides: Sides, callers: Gate) -> None:
    """A client without a certificate is the anonymous principal of the listener."""
    async with start_server(sides.server, callers, tls=OWN, open_to_anyone=True) as served:
        assert await status_as(sides.client, served.address, NOBODY) == "OK"
    assert [each.caller for each in callers.calls] == ["desk"]


async def test_a_certificate_counts_where_anyone_may_call(sides: Sides, callers: Gate) -> None:
    """direct asks for one without insisting; grpcio's library cannot, and its callers stay anonymous."""
    async with start_server(sides.server, callers, tls=OWN, open_to_anyone=True) as served:
        expected = "PERMISSION_DENIED" if sides.server == "direct" else "OK"
        assert await status_as(sides.client, served.address, credentials("printer")) == expected


async def test_a_certificate_of_another_authority_is_refused(sides: Sides, callers: Gate) -> None:
    """There is no connection, and so no call."""
    async with start_server(sides.server, callers, tls=OWN, anonymous=None) as served:
        assert await status_as(sides.client, served.address, credentials("desk", OTHER)) == "UNAVAILABLE"
    assert callers.begun == 0


async def test_a_server_of_another_authority_is_not_called(sides: Sides, callers: Gate) -> None:
    """A client sends nothing to a server that it cannot trust."""
    issued = OTHER.issue(COMPONENT, [NAME])
    imposter = Credentials(OTHER.certificate, issued.certificate, issued.key)
    async with start_server(sides.server, callers, tls=imposter, open_to_anyone=True) as served:
        assert await status_as(sides.client, served.address, credentials("desk")) == "UNAVAILABLE"
    assert callers.begun == 0


async def test_a_server_of_another_component_is_not_called(sides: Sides, callers: Gate) -> None:
    """A certificate of the right authority with the wrong name does not do."""
    issued = AUTHORITY.issue("queue", [server_name("studio", "queue")])
    other = Credentials(AUTHORITY.certificate, issued.certificate, issued.key)
    async with start_server(sides.server, callers, tls=other, open_to_anyone=True) as served:
        assert await status_as(sides.client, served.address, credentials("desk")) == "UNAVAILABLE"
    assert callers.begun == 0


async def test_a_client_without_tls_does_not_reach_a_server_with_it(sides: Sides, callers: Gate) -> None:
    """Nothing is served in the clear at a listener that has certificates."""
    async with start_server(sides.server, callers, tls=OWN, open_to_anyone=True) as served:
        assert await status_as(sides.client, served.address, None) == "UNAVAILABLE"
    assert callers.begun == 0


async def test_a_token_proves_a_caller_where_tls_is_off(sides: Sides, callers: Gate) -> None:
    """That of the token; an unknown token proves nothing."""
    async with start_server(sides.server, callers, tokens=TOKENS, anonymous=None) as served:
        for token, expected in (
            ("secret", "OK"),
            ("other", "PERMISSION_DENIED"),
            ("wrong", "UNAUTHENTICATED"),
            (None, "UNAUTHENTICATED"),
        ):
            assert await status_as(sides.client, served.address, None, token) == expected
    assert [each.caller for each in callers.calls] == ["desk"]


# Renewal.


class Files:
    """The files of a server's certificate."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificate, self.key, self.authority = (folder / name for name in ("crt", "key", "ca"))

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file at once, as who renews certificates does; its time and inode are new."""
        new = self._folder / "new"
        new.write_bytes(data)
        new.rename(path)

    def read(self) -> Credentials:
        return Credentials.read(str(self.certificate), str(self.key), str(self.authority))


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    """Such files, with a certificate of the authority."""
    made = Files(tmp_path)
    issued = AUTHORITY.issue(COMPONENT, [NAME])
    made.write(made.certificate, issued.certificate)
    made.write(made.key, issued.key)
    made.write(made.authority, AUTHORITY.certificate)
    yield made


@asynccontextmanager
async def open_trusting_client(authority: Authority, address: str, shown: Issued) -> AsyncIterator[Any]:
    """A client of gRPC's own library that trusts one authority, on a connection of its own."""
    proof = grpc.ssl_channel_credentials(authority.certificate, shown.key, shown.certificate)
    options = [("grpc.ssl_target_name_override", NAME), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(address, proof, options) as channel:
        yield plain_method(channel)


async def trusts(authority: Authority, address: str, issuer: Authority | None = None) -> str:
    """The status of a call on a new connection by a client that trusts one authority."""
    shown = (issuer or authority).issue("desk")
    async with open_trusting_client(authority, address, shown) as method:
        return await plain_code(method(REQUEST, timeout=20))


async def test_renewed_files_are_used_by_new_connections(carrier: str, callers: Gate, files: Files) -> None:
    """Without a restart, and connections that there are go on."""
    async with (
        start_server(carrier, callers, tls=files.read(), anonymous=None) as served,
        open_trusting_client(AUTHORITY, served.address, AUTHORITY.issue("desk")) as before,
    ):
        assert await plain_code(before(REQUEST)) == "OK"
        assert await trusts(OTHER, served.address) == "UNAVAILABLE"
        issued = OTHER.issue(COMPONENT, [NAME])
        files.write(files.certificate, issued.certificate)
        files.write(files.key, issued.key)
        files.write(files.authority, OTHER.certificate)
        assert await trusts(OTHER, served.address) == "OK"
        assert await trusts(AUTHORITY, served.address) == "UNAVAILABLE"
        assert await plain_code(before(REQUEST)) == "OK"


async def test_files_that_do_not_belong_together_are_ignored(
    carrier: str, callers: Gate, files: Files
) -> None:
    """The last good ones are used until all of the new ones are there."""
    async with start_server(carrier, callers, tls=files.read(), anonymous=None) as served:
        issued = AUTHORITY.issue(COMPONENT, [NAME])
        files.write(files.certificate, issued.certificate)
        assert await trusts(AUTHORITY, served.address) == "OK"
        files.write(files.key, b"not a key")
        assert await trusts(AUTHORITY, served.address) == "OK"
        files.key.unlink()
        assert await trusts(AUTHORITY, served.address) == "OK"
        files.write(files.key, issued.key)
        files.write(files.authority, b"no authority")
        assert await trusts(AUTHORITY, served.address) == "OK"
        files.write(files.authority, AUTHORITY.certificate)
        assert await trusts(AUTHORITY, served.address) == "OK"
        assert await read_certificate(served.port) == issued.certificate


async def read_certificate(port: int) -> bytes:
    """The certificate that a server shows in a new handshake."""
    context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAME)
    shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return ssl.DER_cert_to_PEM_cert(shown).encode()
