"""Header blocks: those of calls are read, those of answers are written so that nothing is kept for them.

Clients send nearly the same block with each call, as numbers of entries in a table that both sides keep. So
a block that changes nothing in that table is read once, and known again for as long as the table stays as it
is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from hpack.exceptions import HPACKDecodingError
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from runtime.transport.grpc.direct.frames import Broken, Code, StreamError
from runtime.transport.grpc.direct.header_fields import FORBIDDEN, check_fields

Header = tuple[bytes, bytes]
Read = TypeVar("Read")

LARGEST_LIST = 16_384
"""Of the names and values of a block, with 32 bytes for each pair, as the protocol counts them."""
LARGEST_BLOCK = 4 * LARGEST_LIST
"""Of the bytes of a block. A list that is too large is read, so that the table stays in step, and refused
with its stream; proxies pass on lists of up to 60 KiB. Beyond this the connection ends."""
TABLE_BYTES = 4096
_ENTRY_BYTES = 32
_STATIC: tuple[Header, ...] = tuple((name, value) for name, value in HeaderTable.STATIC_TABLE)
_STATICS = len(_STATIC)
_KNOWN_BLOCKS = 64
_LONGEST_KNOWN = 512
_LONGEST_NUMBER = 4
_MOST_NUMBERED = 0x7F - 1 - _STATICS
"""Entries of which each has a number that fits into a byte."""
_NEVER_INDEXED = {
    name: b"\x1f" + bytes((index - 0x0F,))
    for index, (name, _) in enumerate(_STATIC, 1)
    if name in (b"authorization", b"cookie", b"proxy-authorization")
}
"""How the literals of credentials begin: neither a reader nor a proxy keeps them in a table, where somebody
who can add entries of his own could find out by their sizes what is in it (RFC 7541, 7.1.3)."""
_RUN = re.compile(rb"[\x81-\xfe]*")
"""Headers that are numbers of entries, in one byte each."""
NO_TABLE = b"\x20"
"""The table has a size of 0 from now on."""


class HeaderListTooLarge(StreamError):
    """A header list of more than LARGEST_LIST bytes."""

    def __init__(self, headers: list[Header]) -> None:
        """`headers` are those that came first."""
        super().__init__(Code.ENHANCE_YOUR_CALM, f"headers of more than {LARGEST_LIST} bytes")
        self.headers = headers


class HeaderReader(Generic[Read]):
    """Reads the blocks of one connection, in their order, into what `make` makes of the headers."""

    def __init__(
        self,
        make: Callable[[list[Header]], Read],
        check: Callable[[list[Header]], None] = check_fields,
    ) -> None:
        """`check` raises a StreamError at malformed headers; it is asked where one has looked like that."""
        self._make = make
        self._check = check
        self._entries: deque[Header] = deque()
        self._size = 0
        self._bound = TABLE_BYTES
        self._known: dict[bytes, Read] = {}
        self._runs: dict[bytes, tuple[list[Header], int]] = {}
        """The headers, and their size, that blocks begin with which name entries of the table only."""
        self._is_suspect = False
        """Whether a header was said that may be malformed: from then on it may be in the table."""

    def read(self, block: bytes) -> Read:
        """What a block says; raises Broken where it says nothing that could be understood.

        Raises a StreamError where it can be read and says what no stream may say.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        try:
            headers, listed, changed = self._headers(block)
        except (IndexError, HPACKDecodingError) as error:
            raise Broken(Code.COMPRESSION_ERROR, "a header block that cannot be read") from error
        if changed or len(self._known) >= _KNOWN_BLOCKS:
            self._known.clear()
        if changed or len(self._runs) >= _KNOWN_BLOCKS:
            self._runs.clear()
        if listed > LARGEST_LIST:
            raise HeaderListTooLarge(headers)
        if self._is_suspect:
            self._check(headers)
        read = self._make(headers)
        if not changed and len(block) <= _LONGEST_KNOWN:
            self._known[block] = read
        return read

    def _headers(self, block: bytes) -> tuple[list[Header], int, bool]:
        """The headers of a block up to the largest list, the size of all, and whether the table changed."""
        headers, listed, position = self._first_run(block)
        end, changed = len(block), False
        while position < end:
            first = block[position]
            if first & 0x80:
                index, position = _number(block, position, 0x7F)
                header = self._entry(index)
            elif first & 0x40:
                header, position = self._literal(block, position, 0x3F)
                self._add(header)
                changed = True
            elif first & 0x20:
                if listed:
                    raise Broken(Code.COMPRESSION_ERROR, "a new size of the table after a header")
                bound, position = _number(block, position, 0x1F)
                self._resize(bound)
                changed = True
                continue
            else:
                header, position = self._literal(block, position, 0x0F)
            listed += len(header[0]) + len(header[1]) + _ENTRY_BYTES
            if listed <= LARGEST_LIST:
                headers.append(header)
        return headers, listed, changed

    def _first_run(self, block: bytes) -> tuple[list[Header], int, int]:
        """The headers that a block begins with by numbers of one byte, their size, and where they end.

        That is nearly every header of nearly every call; what varies from call to call follows them.
        """
        run = _RUN.match(block)[0]  # type: ignore[index]
        known = self._runs.get(run)
        if known is None:
            headers = [self._entry(each - 0x80) for each in run[: LARGEST_LIST // _ENTRY_BYTES]]
            listed = sum(len(name) + len(value) + _ENTRY_BYTES for name, value in headers)
            if listed > LARGEST_LIST:
                return [], 0, 0
            known = self._runs[run] = (headers, listed)
        return known[0].copy(), known[1], len(run)

    def _literal(self, block: bytes, position: int, mask: int) -> tuple[Header, int]:
        if block[position] & mask:
            index, position = _number(block, position, mask)
            name = self._entry(index)[0]
        else:
            name, position = _text(block, position + 1)
            if not name.islower():
                self._is_suspect = True
        value, position = _text(block, position)
        if not value.isalnum() and (value != value.strip() or value != value.translate(None, FORBIDDEN)):
            self._is_suspect = True
        return (name, value), position

    def _entry(self, index: int) -> Header:
        if index == 0:
            raise IndexError("no entry has the number 0")
        return _STATIC[index - 1] if index <= _STATICS else self._entries[index - _STATICS - 1]

    def _add(self, header: Header) -> None:
        self._entries.appendleft(header)
        self._size += len(header[0]) + len(header[1]) + _ENTRY_BYTES
        self._shrink()

    def _resize(self, bound: int) -> None:
        if bound > TABLE_BYTES:
            raise Broken(Code.COMPRESSION_ERROR, f"a table of more than {TABLE_BYTES} bytes")
        self._bound = bound
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._bound:
            name, value = self._entries.pop()
            self._size -= len(name) + len(value) + _ENTRY_BYTES


class HeaderWriter:
    """Writes blocks of headers that come again: each is said once, and is a number from then on."""

    def __init__(self) -> None:
        self._places: dict[Header, int] = {}
        self._size = 0
        self._most = _MOST_NUMBERED
        self._news = b""
        self._known: dict[tuple[Header, ...], bytes] = {}

    def number_nothing(self) -> None:
        """Spells everything out from now on, for a reader that keeps less than others do."""
        self._places.clear()
        self._known.clear()
        self._most = 0
        self._news = NO_TABLE

    def block(self, headers: tuple[Header, ...]) -> bytes:
        """The block of some headers, which has to be sent."""
        known = self._known.get(headers)
        return self._written(headers) if known is None else known

    def _written(self, headers: tuple[Header, ...]) -> bytes:
        said, held = [self._news], len(self._places)
        for header in headers:
            place = self._places.get(header)
            if (secret := _NEVER_INDEXED.get(header[0])) is not None:
                said.append(secret + _spelled(header[1]))
            elif place is not None:
                # The newest entry has the first number after the static ones.
                said.append(bytes((0x80 | _STATICS + len(self._places) - place,)))
            elif self._add(header):
                said.append(b"\x40" + _spelled(header[0]) + _spelled(header[1]))
            else:
                said.append(written([header]))
        block = b"".join(said)
        if len(self._places) > held:
            self._known.clear()
        elif not self._news:
            self._known[headers] = block
        self._news = b""
        return block

    def _add(self, header: Header) -> bool:
        """Whether there is room for one more: none ever leaves, so that places stay as they are."""
        size = self._size + len(header[0]) + len(header[1]) + _ENTRY_BYTES
        if size > TABLE_BYTES or len(self._places) >= self._most:
            return False
        self._size = size
        self._places[header] = len(self._places)
        return True


def written(headers: Iterable[Header]) -> bytes:
    """The block of some headers, with everything spelled out."""
    return b"".join(b"\x00" + _spelled(name) + _spelled(value) for name, value in headers)


def _number(block: bytes, position: int, mask: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = block[position] & mask
    position += 1
    if number < mask:
        return number, position
    for shift in range(0, 7 * _LONGEST_NUMBER, 7):
        part = block[position]
        position += 1
        number += (part & 0x7F) << shift
        if part < 0x80:
            return number, position
    raise Broken(Code.COMPRESSION_ERROR, "a number that is too large for any header")


def _text(block: bytes, position: int) -> tuple[bytes, int]:
    """A name or a value, and where it ends."""
    packed = block[position] & 0x80
    length, begin = block[position], position + 1
    if length >= 0x7F:
        length, begin = _number(block, position, 0x7F)
    end = begin + length
    if end > len(block):
        raise IndexError("a text that is longer than its block")
    text = block[begin:end]
    return (decode_huffman(text) if packed else text), end


def _spelled(text: bytes) -> bytes:
    length = len(text)
    if length < 0x7F:
        return bytes((length,)) + text
    said, length = [0x7F], length - 0x7F
    while length >= 0x80:
        said.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes((*said, length)) + text
