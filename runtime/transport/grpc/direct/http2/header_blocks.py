"""HPACK (RFC 7541): decoding of the header blocks that are received, and encoding of those that are sent.

Clients send nearly the same header block with each call, as indexes into the dynamic table that both sides
keep. So a block that does not change that table is decoded once, and cached for as long as the table stays
as it is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from hpack import Decoder, HPACKDecodingError
from hpack.huffman_table import decode_huffman

from runtime.transport.grpc.direct.http2.frames import ErrorCode, Http2ConnectionError, StreamError
from runtime.transport.grpc.direct.http2.header_fields import FORBIDDEN_BYTES, Header, check_fields

Parsed = TypeVar("Parsed")

MAX_HEADER_LIST_BYTES = 16_384
"""Of the names and values of a block, with 32 bytes for each field: SETTINGS_MAX_HEADER_LIST_SIZE."""
MAX_BLOCK_BYTES = 4 * MAX_HEADER_LIST_BYTES
"""Of the bytes of a block. A header list that is too large is decoded, so that the dynamic table stays in
step, and refused with its stream; proxies pass on lists of up to 60 KiB. Beyond this the connection ends."""
TABLE_BYTES = 4096
_ENTRY_OVERHEAD_BYTES = 32
_STATIC_ENTRIES = 61
_STATIC_TABLE: tuple[Header, ...] = tuple(
    (name, value)
    for name, value in Decoder().decode(
        bytes(0x80 | index for index in range(1, _STATIC_ENTRIES + 1)), raw=True
    )
)
"""RFC 7541, appendix A, as a decoder has it that is given all of its indexes."""
_MAX_CACHED_BLOCKS = 64
_MAX_CACHED_BLOCK_BYTES = 512
_MAX_INTEGER_BYTES = 4
_MAX_DYNAMIC_ENTRIES = 0x7F - 1 - _STATIC_ENTRIES
"""Entries of which each has an index that fits into one byte."""
_NEVER_INDEXED = {
    name: b"\x1f" + bytes((index - 0x0F,))
    for index, (name, _) in enumerate(_STATIC_TABLE, 1)
    if name in (b"authorization", b"cookie", b"proxy-authorization")
}
"""The prefixes of literals of credentials, which neither a decoder nor a proxy adds to a table: an attacker
who can add entries could guess its content by their sizes (RFC 7541, 7.1.3)."""
_INDEXED_RUN = re.compile(rb"[\x81-\xfe]*")
"""Indexed fields of one byte each."""
EMPTY_TABLE_UPDATE = b"\x20"
"""A dynamic table size update to 0."""


class HeaderListTooLarge(StreamError):
    """A header list of more than MAX_HEADER_LIST_BYTES."""

    def __init__(self, headers: list[Header]) -> None:
        """`headers` are the first ones of the list."""
        super().__init__(
            ErrorCode.ENHANCE_YOUR_CALM, f"a header list of more than {MAX_HEADER_LIST_BYTES} bytes"
        )
        self.headers = headers


class HeaderDecoder(Generic[Parsed]):
    """Decoder of the header blocks of one connection, in their order."""

    def __init__(
        self,
        parse: Callable[[list[Header]], Parsed],
        check: Callable[[list[Header]], None] = check_fields,
    ) -> None:
        """`parse` makes the result of the headers. `check` raises a StreamError at malformed fields; it is
        called from the first field on that may be one.
        """
        self._parse = parse
        self._check = check
        self._entries: deque[Header] = deque()
        self._table_bytes = 0
        self._max_table_bytes = TABLE_BYTES
        self._cached_blocks: dict[bytes, Parsed] = {}
        self._cached_runs: dict[bytes, tuple[list[Header], int]] = {}
        """The headers, and their size, of the indexed fields that blocks begin with."""
        self._is_suspect = False
        """Whether a field was received that may be malformed: from then on it may be in the table."""

    def decode(self, block: bytes) -> Parsed:
        """Decode and parse a header block.

        Raises Http2ConnectionError where it cannot be decoded, and StreamError where its headers are
        malformed.
        """
        cached = self._cached_blocks.get(block)
        if cached is not None:
            return cached
        try:
            headers, list_bytes, has_changed_table = self._decode_headers(block)
        except (IndexError, HPACKDecodingError) as error:
            raise Http2ConnectionError(
                ErrorCode.COMPRESSION_ERROR, "a header block cannot be decoded"
            ) from error
        if has_changed_table or len(self._cached_blocks) >= _MAX_CACHED_BLOCKS:
            self._cached_blocks.clear()
        if has_changed_table or len(self._cached_runs) >= _MAX_CACHED_BLOCKS:
            self._cached_runs.clear()
        if list_bytes > MAX_HEADER_LIST_BYTES:
            raise HeaderListTooLarge(headers)
        if self._is_suspect:
            self._check(headers)
        parsed = self._parse(headers)
        if not has_changed_table and len(block) <= _MAX_CACHED_BLOCK_BYTES:
            self._cached_blocks[block] = parsed
        return parsed

    def _decode_headers(self, block: bytes) -> tuple[list[Header], int, bool]:
        """The headers of a block up to the largest list, the size of all, and whether the table changed."""
        headers, list_bytes, position = self._decode_indexed_run(block)
        end, has_changed_table = len(block), False
        while position < end:
            first = block[position]
            if first & 0x80:
                index, position = _decode_integer(block, position, 0x7F)
                header = self._get_entry(index)
            elif first & 0x40:
                header, position = self._decode_literal(block, position, 0x3F)
                self._add_entry(header)
                has_changed_table = True
            elif first & 0x20:
                if list_bytes:
                    raise Http2ConnectionError(
                        ErrorCode.COMPRESSION_ERROR, "a dynamic table size update after a header field"
                    )
                table_bytes, position = _decode_integer(block, position, 0x1F)
                self._resize_table(table_bytes)
                has_changed_table = True
                continue
            else:
                header, position = self._decode_literal(block, position, 0x0F)
            list_bytes += len(header[0]) + len(header[1]) + _ENTRY_OVERHEAD_BYTES
            if list_bytes <= MAX_HEADER_LIST_BYTES:
                headers.append(header)
        return headers, list_bytes, has_changed_table

    def _decode_indexed_run(self, block: bytes) -> tuple[list[Header], int, int]:
        """The headers that a block begins with by indexes of one byte, their size, and where they end.

        That is nearly every header of nearly every call; what varies from call to call follows them.
        """
        run = _INDEXED_RUN.match(block)[0]  # type: ignore[index]
        cached = self._cached_runs.get(run)
        if cached is None:
            headers = [
                self._get_entry(each - 0x80) for each in run[: MAX_HEADER_LIST_BYTES // _ENTRY_OVERHEAD_BYTES]
            ]
            list_bytes = sum(len(name) + len(value) + _ENTRY_OVERHEAD_BYTES for name, value in headers)
            if list_bytes > MAX_HEADER_LIST_BYTES:
                return [], 0, 0
            cached = self._cached_runs[run] = (headers, list_bytes)
        return cached[0].copy(), cached[1], len(run)

    def _decode_literal(self, block: bytes, position: int, mask: int) -> tuple[Header, int]:
        if block[position] & mask:
            index, position = _decode_integer(block, position, mask)
            name = self._get_entry(index)[0]
        else:
            name, position = _decode_string(block, position + 1)
            if not name.islower():
                self._is_suspect = True
        value, position = _decode_string(block, position)
        if not value.isalnum() and (
            value != value.strip() or value != value.translate(None, FORBIDDEN_BYTES)
        ):
            self._is_suspect = True
        return (name, value), position

    def _get_entry(self, index: int) -> Header:
        if index == 0:
            raise IndexError("no entry has the index 0")
        if index <= _STATIC_ENTRIES:
            return _STATIC_TABLE[index - 1]
        return self._entries[index - _STATIC_ENTRIES - 1]

    def _add_entry(self, header: Header) -> None:
        self._entries.appendleft(header)
        self._table_bytes += len(header[0]) + len(header[1]) + _ENTRY_OVERHEAD_BYTES
        self._evict_entries()

    def _resize_table(self, table_bytes: int) -> None:
        if table_bytes > TABLE_BYTES:
            raise Http2ConnectionError(
                ErrorCode.COMPRESSION_ERROR, f"a dynamic table of more than {TABLE_BYTES} bytes"
            )
        self._max_table_bytes = table_bytes
        self._evict_entries()

    def _evict_entries(self) -> None:
        while self._table_bytes > self._max_table_bytes:
            name, value = self._entries.pop()
            self._table_bytes -= len(name) + len(value) + _ENTRY_OVERHEAD_BYTES


class HeaderEncoder:
    """Encoder of headers that come again: each is sent as a literal once, and as an index from then on."""

    def __init__(self) -> None:
        self._entries: dict[Header, int] = {}
        """The headers in the dynamic table, in the order in which they were added."""
        self._table_bytes = 0
        self._max_entries = _MAX_DYNAMIC_ENTRIES
        self._table_size_update = b""
        self._cached_blocks: dict[tuple[Header, ...], bytes] = {}

    def disable_dynamic_table(self) -> None:
        """Send all headers as literals, to a peer whose SETTINGS_HEADER_TABLE_SIZE is small."""
        self._entries.clear()
        self._cached_blocks.clear()
        self._max_entries = 0
        self._table_size_update = EMPTY_TABLE_UPDATE

    def encode(self, headers: tuple[Header, ...]) -> bytes:
        """Encode headers into a block, which has to be sent: it may have changed the dynamic table."""
        cached = self._cached_blocks.get(headers)
        return self._encode_uncached(headers) if cached is None else cached

    def _encode_uncached(self, headers: tuple[Header, ...]) -> bytes:
        parts, entries_before = [self._table_size_update], len(self._entries)
        for header in headers:
            position = self._entries.get(header)
            if (never_indexed := _NEVER_INDEXED.get(header[0])) is not None:
                parts.append(never_indexed + _encode_string(header[1]))
            elif position is not None:
                # The newest entry has the first index after those of the static table.
                parts.append(bytes((0x80 | _STATIC_ENTRIES + len(self._entries) - position,)))
            elif self._add_entry(header):
                parts.append(b"\x40" + _encode_string(header[0]) + _encode_string(header[1]))
            else:
                parts.append(encode_headers([header]))
        block = b"".join(parts)
        if len(self._entries) > entries_before:
            self._cached_blocks.clear()
        elif not self._table_size_update:
            self._cached_blocks[headers] = block
        self._table_size_update = b""
        return block

    def _add_entry(self, header: Header) -> bool:
        """Add an entry if there is room: none is ever evicted, so that positions stay as they are."""
        table_bytes = self._table_bytes + len(header[0]) + len(header[1]) + _ENTRY_OVERHEAD_BYTES
        if table_bytes > TABLE_BYTES or len(self._entries) >= self._max_entries:
            return False
        self._table_bytes = table_bytes
        self._entries[header] = len(self._entries)
        return True


def encode_headers(headers: Iterable[Header]) -> bytes:
    """Encode headers as literals without indexing: a block that depends on no dynamic table."""
    return b"".join(b"\x00" + _encode_string(name) + _encode_string(value) for name, value in headers)


def _decode_integer(block: bytes, position: int, mask: int) -> tuple[int, int]:
    """Decode an integer (RFC 7541, section 5.1); returns it and where it ends."""
    number = block[position] & mask
    position += 1
    if number < mask:
        return number, position
    for shift in range(0, 7 * _MAX_INTEGER_BYTES, 7):
        part = block[position]
        position += 1
        number += (part & 0x7F) << shift
        if part < 0x80:
            return number, position
    raise Http2ConnectionError(
        ErrorCode.COMPRESSION_ERROR, f"an integer of a header block has more than {_MAX_INTEGER_BYTES} bytes"
    )


def _decode_string(block: bytes, position: int) -> tuple[bytes, int]:
    """Decode a string literal (RFC 7541, section 5.2); returns it and where it ends."""
    is_huffman = block[position] & 0x80
    length, begin = block[position], position + 1
    if length >= 0x7F:
        length, begin = _decode_integer(block, position, 0x7F)
    end = begin + length
    if end > len(block):
        raise IndexError("a string is longer than its block")
    text = block[begin:end]
    return (decode_huffman(text) if is_huffman else text), end


def _encode_string(text: bytes) -> bytes:
    length = len(text)
    if length < 0x7F:
        return bytes((length,)) + text
    encoded, length = [0x7F], length - 0x7F
    while length >= 0x80:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes((*encoded, length)) + text
