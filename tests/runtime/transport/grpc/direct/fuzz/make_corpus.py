"""`python -m tests.runtime.transport.grpc.direct.fuzz.make_corpus` writes the seeds of the fuzz corpus.

A seed is what one side of a connection sends: `request-*` is sent by a client, from its preface on, and
`response-*` by a server, to a client with requests on the streams 1, 3, 5 and 7. All bytes are written out
here, so that the same files come out everywhere.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from tests.runtime.transport.grpc.direct.support.conformance import literal, request_block, split_block
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    CLIENT_PREFACE,
    CONTINUATION,
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    frame,
    rst_stream,
    settings,
    window_update,
)

FOLDER = Path(__file__).parent / "corpus"
GRPC = (b"content-type", b"application/grpc")
MESSAGE = b"\0\0\0\0\x14" + b"x" * 20
COMPRESSED = b"\x01\0\0\0\x03abc"
GZIP = b"\x01\0\0\0\x15" + bytes.fromhex("1f8b0800000000000003 4b0400 43beb7e8 01000000")
"""The message `a`."""
STATUS_OK = literal(b"grpc-status", b"0")


def open_call(stream: int, path: bytes, *fields: tuple[bytes, bytes]) -> bytes:
    """The HEADERS of a gRPC call."""
    return frame(HEADERS, END_HEADERS, stream, request_block(path, GRPC, *fields))


def call(stream: int, path: bytes, body: bytes = MESSAGE, *fields: tuple[bytes, bytes]) -> bytes:
    """A whole gRPC call."""
    return open_call(stream, path, *fields) + frame(DATA, END_STREAM, stream, body)


def response(stream: int, body: bytes = MESSAGE, trailers: bytes = STATUS_OK) -> bytes:
    """A whole gRPC response."""
    begin = frame(HEADERS, END_HEADERS, stream, b"\x88" + literal(*GRPC))
    return begin + frame(DATA, 0, stream, body) + frame(HEADERS, END_BOTH, stream, trailers)


def list_valid_requests() -> Iterator[tuple[str, bytes]]:
    """Conversations in which a client keeps all rules."""
    yield "preface", b""
    yield "unary", call(1, b"/at-once")
    yield "two-calls", call(1, b"/at-once") + call(3, b"/later")
    yield (
        "interleaved",
        (
            open_call(1, b"/at-once")
            + open_call(3, b"/later")
            + frame(DATA, 0, 1, MESSAGE[:7])
            + frame(DATA, END_STREAM, 3, MESSAGE)
            + frame(DATA, END_STREAM, 1, MESSAGE[7:])
        ),
    )
    yield "streaming", open_call(1, b"/again") + frame(DATA, 0, 1, MESSAGE * 3) + frame(DATA, END_STREAM, 1)
    yield (
        "trailers",
        (
            open_call(1, b"/at-once")
            + frame(DATA, 0, 1, MESSAGE)
            + frame(HEADERS, END_BOTH, 1, literal(b"a", b"b"))
        ),
    )
    yield "cancelled", call(1, b"/never") + rst_stream(1)
    yield (
        "deadlines",
        call(1, b"/never", MESSAGE, (b"grpc-timeout", b"1n"))
        + call(3, b"/later", MESSAGE, (b"grpc-timeout", b"0S")),
    )
    yield "gzip", call(1, b"/at-once", GZIP, (b"grpc-encoding", b"gzip"))
    yield "unknown-method", call(1, b"/nowhere")
    yield "no-grpc", frame(HEADERS, END_BOTH, 1, request_block(b"/at-once"))
    yield (
        "padding",
        (
            frame(
                HEADERS,
                PADDED | WITH_PRIORITY | END_HEADERS,
                1,
                b"\x03" + bytes(5) + request_block(b"/later", GRPC) + bytes(3),
            )
            + frame(DATA, PADDED | END_STREAM, 1, b"\x04" + MESSAGE + bytes(4))
        ),
    )
    yield "continuation", split_block(1, request_block(b"/at-once", GRPC, (b"x-a", b"y" * 60)), 16)
    yield (
        "small-windows",
        (
            settings((INITIAL_WINDOW_SIZE, 3), (MAX_FRAME_SIZE, 20_000))
            + call(1, b"/at-once")
            + b"".join(window_update(1, 5) for _ in range(5))
            + settings((INITIAL_WINDOW_SIZE, 100))
        ),
    )
    yield "shrinking-window", call(1, b"/never") + settings((INITIAL_WINDOW_SIZE, 0)) + window_update(1, 9)
    yield (
        "table-sizes",
        settings((HEADER_TABLE_SIZE, 0)) + call(1, b"/at-once") + settings((HEADER_TABLE_SIZE, 9)),
    )
    yield (
        "control-frames",
        (
            frame(PING, payload=b"12345678")
            + frame(PING, ACK, payload=bytes(8))
            + frame(PRIORITY, 0, 7, bytes(5))
            + frame(SETTINGS, ACK)
            + frame(0x2A, 0xFF, 3, b"unknown")
            + call(1, b"/at-once")
            + frame(GOAWAY, payload=bytes(8) + b"goodbye")
        ),
    )
    yield "skipped-streams", call(5, b"/at-once") + call(11, b"/later")


def list_broken_requests() -> Iterator[tuple[str, bytes]]:
    """Each rule for a client broken once, after a call that is in flight."""
    begun = call(1, b"/never")
    block = request_block(b"/at-once", GRPC)
    broken = {
        "data-stream-0": frame(DATA, 0, 0, b"x"),
        "data-idle": frame(DATA, 0, 9, b"x"),
        "data-half-closed": frame(DATA, 0, 1, b"x"),
        "data-padding": open_call(3, b"/later") + frame(DATA, PADDED, 3, b"\xffx"),
        "headers-even": frame(HEADERS, END_BOTH, 2, block),
        "headers-stream-0": frame(HEADERS, END_BOTH, 0, block),
        "headers-skipped": call(7, b"/later") + frame(HEADERS, END_BOTH, 5, block),
        "headers-twice": open_call(3, b"/later") + open_call(3, b"/later"),
        "headers-interrupted": frame(HEADERS, 0, 3, block) + frame(PING, payload=bytes(8)),
        "headers-short-priority": frame(HEADERS, END_BOTH | WITH_PRIORITY, 3, bytes(3)),
        "headers-malformed": frame(HEADERS, END_BOTH, 3, b"\x83\x86" + literal(b"A", b"b")),
        "priority-short": frame(PRIORITY, 0, 1, bytes(4)),
        "reset-idle": rst_stream(9),
        "reset-short": frame(RST_STREAM, 0, 1, bytes(3)),
        "settings-on-stream": frame(SETTINGS, 0, 1),
        "settings-short": frame(SETTINGS, 0, 0, bytes(5)),
        "settings-ack-payload": frame(SETTINGS, ACK, 0, bytes(6)),
        "settings-window": settings((INITIAL_WINDOW_SIZE, 2**31)),
        "settings-frame-size": settings((MAX_FRAME_SIZE, 1)),
        "push-promise": frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + block),
        "ping-short": frame(PING, 0, 0, bytes(7)),
        "goaway-short": frame(GOAWAY, 0, 0, bytes(7)),
        "window-zero": window_update(1, 0) + window_update(0, 0),
        "window-overflow": window_update(1, 2**31 - 1) + window_update(0, 2**31 - 1),
        "window-short": frame(WINDOW_UPDATE, 0, 0, bytes(3)),
        "continuation-alone": frame(CONTINUATION, END_HEADERS, 1, block),
        "frame-too-large": b"\x00\x40\x01\x00\x00\x00\x00\x00\x01",
        "message-length": call(3, b"/later", b"\0\xff\xff\xff\xff") + call(5, b"/later", MESSAGE + b"\0"),
        "message-compressed": call(3, b"/at-once", COMPRESSED, (b"grpc-encoding", b"gzip")),
    }
    for name, sent in broken.items():
        yield name, begun + sent + frame(PING, payload=b"the end?")


def list_header_blocks() -> Iterator[tuple[str, bytes]]:
    """Oddities of HPACK, most of them behind a valid block."""
    block = request_block(b"/at-once", GRPC)
    oddities = {
        "index-0": b"\x80",
        "index-beyond": b"\xbe",
        "integer-long": b"\xff" + b"\x80" * 12 + b"\x01",
        "integer-zeros": b"\x7f\x80\x80\x00\x01b",
        "string-cut": b"\x40\x01a\x7f\xff\x7f",
        "huffman-eos": b"\x00\x01a\x84\xff\xff\xff\xff",
        "huffman-padding": b"\x00\x01a\x82\x1f\xff",
        "huffman": b"\x40\x81\x1f\x8c" + bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff"),
        "evictions": b"".join(b"\x40\x02%02d\x7f\x61" % each + b"v" * 224 for each in range(3)) + b"\xbe\xbf",
        "late-table-size": b"\x20",
        "never-indexed": b"\x10\x01a\x01b\x1f\x08\x01c",
    }
    for name, odd in oddities.items():
        yield f"hpack-{name}", frame(HEADERS, END_BOTH, 1, block + odd) + call(3, b"/at-once")
    sizes = b"\x20\x3f\xe1\x1f"
    yield (
        "hpack-table-sizes",
        frame(HEADERS, END_BOTH, 1, sizes + block + b"\x40\x01a\x01b")
        + frame(HEADERS, END_BOTH, 3, sizes + block + b"\xbe"),
    )
    yield "hpack-many-indexed", frame(HEADERS, END_BOTH, 1, b"\x83\x86\x84" + b"\x90" * 400)


def list_responses() -> Iterator[tuple[str, bytes]]:
    """What servers send: good responses, bad ones, and ends of the connection."""
    begin = frame(HEADERS, END_HEADERS, 1, b"\x88" + literal(*GRPC))
    yield "unary", response(1) + response(3)
    yield "out-of-order", response(7) + response(1) + response(5)
    yield (
        "trailers-only",
        frame(HEADERS, END_BOTH, 1, b"\x88" + literal(*GRPC) + literal(b"grpc-status", b"5")),
    )
    yield (
        "status-message",
        response(1, MESSAGE, literal(b"grpc-status", b"13") + literal(b"grpc-message", b"%zz%C3%28")),
    )
    yield "informational", frame(HEADERS, END_HEADERS, 1, literal(b":status", b"103")) + response(1)
    yield (
        "page",
        frame(HEADERS, END_HEADERS, 1, b"\x8d" + literal(b"content-type", b"text/html"))
        + frame(DATA, END_STREAM, 1, b"<html>"),
    )
    yield (
        "compressed",
        frame(HEADERS, END_HEADERS, 1, b"\x88" + literal(*GRPC) + literal(b"grpc-encoding", b"gzip"))
        + frame(DATA, 0, 1, COMPRESSED)
        + frame(HEADERS, END_BOTH, 1, STATUS_OK),
    )
    yield "two-messages", begin + frame(DATA, 0, 1, MESSAGE * 2) + frame(HEADERS, END_BOTH, 1, STATUS_OK)
    yield "data-first", frame(DATA, 0, 1, MESSAGE) + response(3)
    yield "headers-twice", begin + begin + response(3)
    yield "end-without-trailers", begin + frame(DATA, END_STREAM, 1, MESSAGE)
    yield "resets", rst_stream(1, 7) + rst_stream(3, 8) + begin + rst_stream(5, 0xFFFF)
    yield "goaway", frame(GOAWAY, payload=struct.pack(">LL", 3, 0)) + response(1) + response(3)
    yield "goaway-error", frame(GOAWAY, payload=struct.pack(">LL", 0, 11) + b"too_many_pings")
    yield "few-streams", settings((3, 1), (INITIAL_WINDOW_SIZE, 1), (HEADER_TABLE_SIZE, 0)) + response(1)
    yield "idle-stream", response(9)
    yield "push-promise", frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2\x88")
    yield "hpack-error", begin + frame(HEADERS, END_BOTH, 1, b"\xff\xff\xff")


def make_seeds() -> dict[str, bytes]:
    """All seeds, by the name of their file."""
    valid = dict(list_valid_requests())
    seeds = {f"request-{name}": CLIENT_PREFACE + sent for name, sent in valid.items()}
    for source, prefix in ((list_broken_requests, "request-broken-"), (list_header_blocks, "request-")):
        seeds |= {f"{prefix}{name}": CLIENT_PREFACE + sent for name, sent in source()}
    seeds |= {f"response-{name}": settings() + sent for name, sent in list_responses()}
    seeds["request-truncated-preface"] = PREFACE[:-1]
    seeds["request-truncated-settings"] = CLIENT_PREFACE[:-4]
    seeds["request-truncated-headers"] = CLIENT_PREFACE + call(1, b"/at-once")[:20]
    seeds["request-truncated-data"] = CLIENT_PREFACE + call(1, b"/at-once")[:-3]
    seeds["request-truncated-message"] = (
        CLIENT_PREFACE + open_call(1, b"/later") + frame(DATA, 0, 1, MESSAGE[:9])
    )
    seeds["request-http-1"] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
    seeds["response-truncated"] = settings() + response(1)[:-7]
    seeds["response-http-1"] = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    return {f"{name}.bin": data for name, data in seeds.items()}


def main() -> None:
    """Write the files, and remove those that are no seeds any more."""
    seeds = make_seeds()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.bin"):
        if path.name not in seeds:
            path.unlink()
    for name, data in seeds.items():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
