"""Hostile or broken clients: invalid HTTP, too much of it, or too slow."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from msgspec.structs import force_setattr

from runtime.call.identity import Authenticator
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.transport.http.protocol import HttpLimits
from runtime.transport.http.server import HttpServer
from runtime.world import RealWorld
from tests.runtime.transport.http.counter import Served, bearer
from tests.support.plain_http import NO_TLS

FORM = "/forms/p1/fill"
PATIENCE = 60.0


def form_of(length: int) -> bytes:
    """The headers of a form whose body is said to have so many bytes."""
    lines = (
        f"POST {FORM} HTTP/1.1",
        "host: 127.0.0.1",
        "content-type: application/json",
        f"content-length: {length}",
    )
    return "\r\n".join((*lines, "", "")).encode()


@contextmanager
def connect(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        yield connection


def read_response(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """All that comes until the other side closes: status, headers and body."""
    found = b""
    while part := connection.recv(65536):
        found += part
    head, _, body = found.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


def is_alive(connection: socket.socket) -> bool:
    """Whether a connection answers with the health of the node, and stays open."""
    connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
    found = b""
    while not found.endswith(b"}"):
        found += connection.recv(65536)
    return b'"alive":true' in found


def send_request(port: int, *parts: bytes) -> tuple[int, dict[str, str], bytes]:
    with connect(port) as connection:
        for part in parts:
            connection.sendall(part)
        return read_response(connection)


@contextmanager
def listen(kiosk: Served, counter: System, limits: HttpLimits) -> Iterator[int]:
    """Another listener of the same node, with limits that a test can reach."""
    endpoints = kiosk.node._parts.endpoints.values()
    world = RealWorld()
    authenticator = Authenticator(counter, None, "courier")
    server = HttpServer(
        counter, endpoints, authenticator, world, Log("test", "ERROR", world), Metrics(), limits=limits
    )
    port = kiosk.run(server.start("127.0.0.1", 0))
    try:
        yield port
    finally:
        kiosk.run(server.stop(1))


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /parcels HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        b"POST /parcels HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /parcels HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
)
def test_invalid_http_is_refused_and_closed(kiosk: Served, sent: bytes) -> None:
    """In the body that all refusals have; two lengths for one body are no HTTP either."""
    status, headers, body = send_request(kiosk.port, sent)
    assert (status, headers["connection"]) == (400, "close")
    assert json.loads(body)["error"]["code"] == "BAD_REQUEST"
    line = kiosk.log[-1]
    assert (line["event"], line["http_status"], line["grpc_code"]) == ("rpc_error", 400, "INVALID_ARGUMENT")


def test_a_body_in_broken_chunks_does_no_harm(kiosk: Served, http: httpx.Client) -> None:
    """The connection ends, and the next one is served."""
    head = form_of(0).replace(b"content-length: 0", b"transfer-encoding: chunked")
    status, _, _ = send_request(kiosk.port, head, b"zz\r\nnothing\r\n")
    assert status == 400
    assert http.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "head",
    [
        b"GET /forms HTTP/1.1\r\nhost: a\r\nx-long: %s\r\n\r\n" % (b"x" * 40_000),
        b"GET /forms?%s HTTP/1.1\r\nhost: a\r\n\r\n" % (b"x" * 40_000),
        b"GET /forms HTTP/1.1\r\n" + b"x-many: y\r\n" * 5000 + b"\r\n",
        b"GET /forms HTTP/1.1\r\nhost: a\r\nx-endless: " + b"x" * 300_000,
    ],
)
def test_too_many_headers(kiosk: Served, head: bytes) -> None:
    """One long header, a long line, many small ones, and one that does not end."""
    with connect(kiosk.port) as connection:
        try:
            connection.sendall(head)
            status, _, body = read_response(connection)
        except ConnectionError:
            return  # The other side had closed before all of it was sent.
    assert status == 431
    assert json.loads(body)["error"]["code"] == "REQUEST_HEADER_FIELDS_TOO_LARGE"


def test_headers_that_come_too_slowly(kiosk: Served, counter: System) -> None:
    """A client that does not finish its headers, or sends nothing at all, loses its connection."""
    with listen(kiosk, counter, HttpLimits(10, head_seconds=1)) as port:
        for sent in (b"", b"GET /forms HTTP/1.1\r\nhost: ", b"\r\n\r\n"):
            status, _, body = send_request(port, sent)
            assert (status, json.loads(body)["error"]["code"]) == (408, "REQUEST_TIMEOUT")


def test_a_second_request_that_comes_too_slowly(kiosk: Served, counter: System) -> None:
    """Each request of a connection has this timeout."""
    limits = HttpLimits(10, head_seconds=PATIENCE)
    with listen(kiosk, counter, limits) as port, connect(port) as connection:
        assert is_alive(connection)
        # The first request may take as long as a busy machine needs for it; the second will not come at all.
        force_setattr(limits, "head_seconds", 0.1)
        connection.sendall(b"GET /heal")
        assert read_response(connection)[0] == 408


def test_a_body_that_comes_too_slowly(kiosk: Served, counter: System) -> None:
    """The connection is closed, because the begin of the next request is unknown."""
    with listen(kiosk, counter, HttpLimits(10, body_seconds=1)) as port:
        status, headers, body = send_request(port, form_of(100), b'{"answers"')
    assert (status, headers["connection"]) == (408, "close")
    assert json.loads(body)["error"]["message"] == "the body did not come within 1 s"
    line = kiosk.log[-1]
    assert (line["method"], line["grpc_code"]) == ("DeskService.FillForm", "DEADLINE_EXCEEDED")


def test_idle_connections_are_closed(kiosk: Served, counter: System) -> None:
    """A kept connection lives only as long as it is used."""
    with listen(kiosk, counter, HttpLimits(10, idle_seconds=1)) as port, connect(port) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        status, _, _ = read_response(connection)
        assert status == 200


def test_connections_are_bounded(kiosk: Served, counter: System) -> None:
    """One more than allowed is refused at once; there is room again as soon as one ends."""
    with (
        listen(kiosk, counter, HttpLimits(3)) as port,
        connect(port) as first,
        connect(port) as second,
        connect(port) as third,
    ):
        for connection in (first, second, third):
            assert is_alive(connection)
        status, _, body = send_request(port)
        assert (status, json.loads(body)["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
        third.close()
        ends = time.monotonic() + PATIENCE
        while send_request(port, b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n")[0] != 200:
            assert time.monotonic() < ends


def test_a_body_that_is_too_large_is_refused_before_it_comes(kiosk: Served) -> None:
    """Its announced length is enough."""
    with connect(kiosk.port) as connection:
        connection.sendall(form_of(999_999))
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("announced", [True, False])
def test_a_client_that_sends_on_reads_why_it_was_refused(http: httpx.Client, announced: bool) -> None:
    """The rest of a body is thrown away, not answered by a reset that would take the answer along."""
    body = b"x" * 8_000_000
    for _ in range(5):
        content = body if announced else (body[start : start + 65536] for start in range(0, len(body), 65536))
        response = http.post(FORM, content=content, headers={"content-type": "application/json"})
        assert response.status_code == 413
        assert http.get("/healthz").status_code == 200


def test_the_rest_of_a_refused_body_is_not_waited_for_without_end(kiosk: Served, counter: System) -> None:
    """After the time for a body the connection is closed."""
    with listen(kiosk, counter, HttpLimits(10, body_seconds=1)) as port:
        status, _, _ = send_request(port, form_of(9_999_999), b"{")
    assert status == 413


def test_a_client_that_asks_first_is_answered_before_it_sends(kiosk: Served) -> None:
    """With `Expect: 100-continue` a body that would be refused is never sent."""
    head = (
        b"POST %s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: %s\r\nexpect: 100-continue\r\n"
        b"content-length: 15\r\nconnection: close\r\n\r\n"
    )
    assert send_request(kiosk.port, head % (FORM.encode(), b"text/plain"))[0] == 415
    with connect(kiosk.port) as connection:
        connection.sendall(head % (FORM.encode(), b"application/json"))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b'{"answers": {}}')
        assert read_response(connection)[0] == 202


def test_requests_in_one_go_are_answered_in_their_order(kiosk: Served) -> None:
    """Pipelined requests are none the worse for it, and each has its own answer."""
    one = b"GET /forms?count=%d HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    last = b"GET /forms?count=3 HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
    with connect(kiosk.port) as connection:
        connection.sendall(one % 1 + one % 2 + last)
        found = b""
        while part := connection.recv(65536):
            found += part
    assert [found.index(b'"count":%d' % number) for number in (1, 2, 3)] == sorted(
        found.index(b'"count":%d' % number) for number in (1, 2, 3)
    )
    assert found.count(b"HTTP/1.1 200 OK") == 3


def test_a_refused_body_does_not_spoil_the_connection(http: httpx.Client) -> None:
    """A request that is refused before its body is read leaves the connection usable."""
    with httpx.Client(
        base_url=http.base_url, headers={"authorization": "Bearer wrong"}, timeout=60, verify=NO_TLS
    ) as stranger:
        for _ in range(3):
            assert stranger.post(FORM, json={"answers": {"a": "x" * 100_000}}).status_code == 401
            assert stranger.get("/healthz").status_code == 200


def test_a_client_that_goes_in_the_middle_of_its_body(kiosk: Served, http: httpx.Client) -> None:
    """Nothing is answered and nothing breaks."""
    before = len([line for line in kiosk.log if line["event"] == "rpc_fault"])
    with connect(kiosk.port) as connection:
        connection.sendall(form_of(100) + b'{"ans')
    assert http.get("/healthz").status_code == 200
    assert len([line for line in kiosk.log if line["event"] == "rpc_fault"]) == before


def test_an_upgrade_is_not_taken(kiosk: Served) -> None:
    """No websocket, no HTTP/2: the request is answered as if nothing had been offered."""
    head = b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n"
    with connect(kiosk.port) as connection:
        connection.sendall(head)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")


async def test_many_at_once_are_all_answered(kiosk: Served) -> None:
    """Each with its own answer."""
    async with httpx.AsyncClient(
        base_url=kiosk.url, headers=bearer("clerk"), timeout=60, verify=NO_TLS
    ) as client:
        answers = await asyncio.gather(*(client.get(f"/forms?count={number}") for number in range(60)))
    assert [each.json()["count"] for each in answers] == list(range(60))


def test_a_request_id_of_any_length_is_cut(http: httpx.Client, kiosk: Served) -> None:
    """It goes into every line of the log, so it has to end somewhere."""
    http.get("/forms", headers={"x-request-id": "i" * 5000})
    line = next(line for line in reversed(kiosk.log) if str(line.get("request_id", "")).startswith("iiii"))
    assert line["request_id"] == "i" * 64
