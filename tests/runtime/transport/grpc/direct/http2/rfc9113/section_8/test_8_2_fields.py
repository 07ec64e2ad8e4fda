"""RFC 9113, sections 8.2 and 8.3: fields and pseudo-header fields of requests and trailers."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.echo_application import EchoApplication, start_server
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    DATA,
    END_BOTH,
    END_HEADERS,
    HEADERS,
    PROTOCOL_ERROR,
    connect,
    frame,
)

M, S, P, A = (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/echo"), (b":authority", b"here")
MALFORMED = {
    "8.2 capital letters": [M, S, P, (b"X-Id", b"1")],
    "8.2 capital letters in a pseudo-header": [(b":Method", b"POST"), S, P],
    "8.2.1 space in a name": [M, S, P, (b"x id", b"1")],
    "8.2.1 empty name": [M, S, P, (b"", b"1")],
    "8.2.1 colon in a name": [M, S, P, (b"x:id", b"1")],
    "8.2.1 name not in ASCII": [M, S, P, (b"caf\xe9", b"1")],
    "8.2.1 delete in a name": [M, S, P, (b"x\x7f", b"1")],
    "8.2.1 zero in a name": [M, S, P, (b"x\0", b"1")],
    "8.2.1 zero in a value": [M, S, P, (b"x-id", b"1\x002")],
    "8.2.1 carriage return in a value": [M, S, P, (b"x-id", b"1\r2")],
    "8.2.1 line feed in a value": [M, S, P, (b"x-id", b"1\n2")],
    "8.2.1 space before a value": [M, S, P, (b"x-id", b" 1")],
    "8.2.1 space after a value": [M, S, P, (b"x-id", b"1 ")],
    "8.2.1 tab after a value": [M, S, P, (b"x-id", b"1\t")],
    "8.2.1 line feed in the path": [M, S, (b":path", b"/a\nb")],
    "8.2.2 connection": [M, S, P, (b"connection", b"close")],
    "8.2.2 keep-alive": [M, S, P, (b"keep-alive", b"1")],
    "8.2.2 proxy-connection": [M, S, P, (b"proxy-connection", b"close")],
    "8.2.2 transfer-encoding": [M, S, P, (b"transfer-encoding", b"chunked")],
    "8.2.2 upgrade": [M, S, P, (b"upgrade", b"h2c")],
    "8.2.2 te": [M, S, P, (b"te", b"gzip")],
    "8.2.2 te of two": [M, S, P, (b"te", b"trailers, deflate;q=0.5")],
    "8.2.2 two te": [M, S, P, (b"te", b"trailers"), (b"te", b"trailers")],
    "8.3 pseudo-header of a response": [M, S, P, (b":status", b"200")],
    "8.3 unknown pseudo-header": [M, S, P, (b":test", b"ok")],
    "8.3 extended CONNECT": [M, S, P, (b":protocol", b"websocket")],
    "8.3 pseudo-header after a field": [M, S, (b"te", b"trailers"), P],
    "8.3 optional pseudo-header after a field": [M, S, P, (b"x", b"y"), A],
    "8.3.1 no method": [S, P, A],
    "8.3.1 no scheme": [M, P, A],
    "8.3.1 no path": [M, S, A],
    "8.3.1 empty path": [M, S, (b":path", b"")],
    "8.3.1 no pseudo-header": [(b"te", b"trailers")],
    "8.3.1 no field": [],
    "8.3 two methods": [M, M, S, P],
    "8.3 two schemes": [M, S, S, P],
    "8.3 two paths": [M, S, P, P],
    "8.3 two authorities": [M, S, P, A, A],
    "8.5 neither CONNECT nor a path": [M, A],
    "8.1.1 content-length that is no number": [M, S, P, (b"content-length", b"+5")],
    "8.1.1 two content-lengths": [M, S, P, (b"content-length", b"5"), (b"content-length", b"5")],
    "8.1.1 content-length without data": [M, S, P, (b"content-length", b"5")],
}


@pytest.mark.parametrize("headers", MALFORMED)
async def test_a_malformed_request_is_a_stream_error(headers: str) -> None:
    """PROTOCOL_ERROR; no application sees it, and the next request of the connection is answered."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(frame(HEADERS, END_BOTH, 1, peer.encoder.encode(MALFORMED[headers])))
        assert (await peer.read_response(1)).reset == PROTOCOL_ERROR
        peer.send(peer.request(3, body=b"and me?"))
        assert (await peer.read_response(3)).body == b"and me?"
        assert set(application.request_headers) == {3}


async def test_a_malformed_request_that_comes_again_is_a_stream_error_again() -> None:
    """8.2: by then its fields are indexes into the dynamic table."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        for number in (1, 3, 5):
            block = peer.encoder.encode(MALFORMED["8.2.2 connection"])
            peer.send(frame(HEADERS, END_BOTH, number, block))
            assert (await peer.read_response(number)).reset == PROTOCOL_ERROR
        assert len(block) == 4


TRAILERS = {
    "8.1 :path": [P],
    "8.1 :status": [(b":status", b"200")],
    "8.1 :method after a field": [(b"x-sum", b"1"), M],
    "8.2.2 connection": [(b"connection", b"close")],
    "8.2 capital letters": [(b"A", b"b")],
    "8.2.1 line feed": [(b"x-sum", b"1\n")],
}


@pytest.mark.parametrize("trailers", TRAILERS)
async def test_malformed_trailers_are_a_stream_error(trailers: str) -> None:
    """PROTOCOL_ERROR."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(frame(HEADERS, END_HEADERS, 1, peer.encode()), frame(DATA, 0, 1, b"x"))
        peer.send(frame(HEADERS, END_BOTH, 1, peer.encoder.encode(TRAILERS[trailers])), peer.request(3))
        responses = await peer.read_responses(1, 3)
        assert (responses[1].reset, responses[3].reset) == (PROTOCOL_ERROR, None)


VALID = {
    "8.2.1 tokens": [M, S, P, (b"x!#$%&'*+-.^_`|~9", b"1")],
    "8.2.1 empty value": [M, S, P, (b"x-id", b"")],
    "8.2.1 value not in ASCII": [M, S, P, (b"x-id", b"caf\xe9")],
    "8.2.1 spaces within a value": [M, S, P, (b"x-id", b"1 \t 2")],
    "8.2.2 te": [M, S, P, (b"te", b"trailers")],
    "8.2.2 te in capitals": [M, S, P, (b"te", b"Trailers")],
    "8.2.3 several cookies": [M, S, P, (b"cookie", b"a=b"), (b"cookie", b"c=d")],
    "8.3 any order": [P, A, S, M],
    "8.3.1 another scheme": [M, (b":scheme", b"https"), P],
    "8.3.1 no authority": [M, S, P],
    "8.3.1 host": [M, S, P, (b"host", b"here")],
    "8.1.1 content-length of 0": [M, S, P, (b"content-length", b"0")],
}


@pytest.mark.parametrize("headers", VALID)
async def test_a_valid_request_is_answered(headers: str) -> None:
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(frame(HEADERS, END_BOTH, 1, peer.encoder.encode(VALID[headers])))
        assert (await peer.read_response(1)).headers == {b":status": b"200"}
