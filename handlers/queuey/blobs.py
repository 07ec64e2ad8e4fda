"""A folder of content by its SHA-256: written beside its place, and moved there when the disk has it."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from runtime.stores.bounded import BoundedMap

_ADDRESS = re.compile(r"[0-9a-f]{64}")
_PIECE = 1 << 18
_UNFINISHED = "unfinished"
_GIVEN_UP_S = 3600
"""Nobody writes so slowly: what was not touched for so long was left behind by a process that was killed."""
_PROOFS = 100_000
"""Of how many contents the proof of the last verification is remembered."""
_SETTLED_NS = 2_000_000_000
"""How old the last change of a file must be for its status to show the next one.

Clocks of file systems are coarse: two changes within one tick have the same time.
"""
_ALWAYS_HASHED = 1 << 20
"""Content up to this size is hashed before every answer, which takes less than a millisecond."""


def is_address(text: str) -> bool:
    """Whether a text can be the address of anything."""
    return _ADDRESS.fullmatch(text) is not None


class TooLarge(Exception):
    """More than the store takes."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class WrongAddress(Exception):
    """Content that is not what its address says."""

    def __init__(self, wanted: str, actual: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.actual = actual


class Unwritable(Exception):
    """The folder cannot be used: it is full, or not ours to write."""


class Corrupt(Exception):
    """What is stored under an address is not its content any more, or cannot be read."""


class Proof(NamedTuple):
    """What changes with a file: compared instead of its content, where hashing that would cost too much."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, source: io.BufferedReader) -> Proof:
        found = os.fstat(source.fileno())
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def is_written_since(self, source: io.BufferedReader) -> bool:
        """Whether an open file was written to. A file that is replaced meanwhile keeps its content."""
        now = Proof.of(source)
        return (now.size, now.modified_ns) != (self.size, self.modified_ns)


class Stored(NamedTuple):
    """What became of content: its address, its size, and whether it was there already."""

    address: str
    size: int
    known: bool


class Blobs:
    """The folder. Any number of processes may use it at once."""

    def __init__(self, folder: str, most: int) -> None:
        self._folder = Path(folder)
        self._most = most
        self._proofs: BoundedMap[Proof] = BoundedMap(_PROOFS)
        self._tidied = False

    async def put(self, pieces: AsyncIterator[bytes], wanted: str | None, announced: int | None) -> Stored:
        """Stores content; nothing of it is left where it cannot be stored."""
        if announced is not None and announced > self._most:
            raise TooLarge(self._most)
        if not self._tidied:
            self._tidied = True
            await asyncio.to_thread(self._tidy)
        making = self._folder / _UNFINISHED / uuid4().hex
        try:
            return await self._put(pieces, making, wanted)
        except OSError as error:
            raise Unwritable(str(error)) from None
        finally:
            with suppress(OSError):
                making.unlink()

    async def verify(self, address: str) -> Proof | None:
        """Verify what is stored under an address; None where nothing is.

        Raises Corrupt where it is not the content that belongs there. Small content is hashed each time,
        large content again as soon as its file has changed.
        """
        path = self._place(address)
        if path is None:
            return None
        try:
            with path.open("rb") as source:
                return await self._verify(address, source, thorough=Proof.of(source).size <= _ALWAYS_HASHED)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _trouble(address, error) from None

    async def read(self, address: str, proof: Proof, first: int, last: int) -> AsyncIterator[bytes]:
        """Read a part of verified content; raises Corrupt before the last piece of what is wrong by now.

        The whole content is hashed on its way out, so that a fault of the disk that leaves no trace in the
        status of the file is found too. A part is given as long as the file does not change.
        """
        try:
            with (self._folder / address[:2] / address).open("rb") as source:
                if Proof.of(source) != proof:
                    proof = await self._verify(address, source, thorough=True)
                async for piece in self._pieces(address, source, proof, first, last):
                    yield piece
        except OSError as error:
            self._proofs.remove(address)
            raise _trouble(address, error) from None

    async def _pieces(
        self, address: str, source: io.BufferedReader, proof: Proof, first: int, last: int
    ) -> AsyncIterator[bytes]:
        digest = hashlib.sha256() if (first, last) == (0, proof.size) else None
        source.seek(first)
        while first < last:
            piece = await asyncio.to_thread(source.read, min(_PIECE, last - first))
            first += len(piece)
            if digest is not None:
                digest.update(piece)
            if first == last or not piece:
                # The last piece is held back until the content is known to be right.
                is_right = digest is None or digest.hexdigest() == address
                if not piece or not is_right or proof.is_written_since(source):
                    self._proofs.remove(address)
                    raise Corrupt(address)
            yield piece

    async def _verify(self, address: str, source: io.BufferedReader, *, thorough: bool) -> Proof:
        """Raise Corrupt unless a file has the content of an address, or is as it was when it last had."""
        proof = Proof.of(source)
        if not thorough and self._proofs.get(address) == proof:
            return proof
        self._proofs.remove(address)
        began = time.time_ns()
        if await asyncio.to_thread(_digest, source) != address:
            raise Corrupt(address)
        is_settled = max(proof.modified_ns, proof.changed_ns) < began - _SETTLED_NS
        if is_settled and Proof.of(source) == proof and self._proofs.get(address) is None:
            self._proofs.add(address, proof)
        return proof

    async def _put(self, pieces: AsyncIterator[bytes], making: Path, wanted: str | None) -> Stored:
        making.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with making.open("xb") as target:
            async for piece in pieces:
                size += len(piece)
                if size > self._most:
                    raise TooLarge(self._most)
                digest.update(piece)
                await asyncio.to_thread(target.write, piece)
            address = digest.hexdigest()
            if wanted is not None and address != wanted:
                raise WrongAddress(wanted, address)
            place = self._folder / address[:2] / address
            known = await self._is_intact(address, place)
            if not known:
                await asyncio.to_thread(_settle, target.fileno(), making, place)
        return Stored(address, size, known)

    def _place(self, address: str) -> Path | None:
        """Where content is; an address that is none leads nowhere."""
        return self._folder / address[:2] / address if is_address(address) else None

    async def _is_intact(self, address: str, place: Path) -> bool:
        """Whether content is there and right: hashed, so that an upload repairs whatever is wrong with it."""
        try:
            with place.open("rb") as source:
                await self._verify(address, source, thorough=True)
        except (Corrupt, OSError):
            self._proofs.remove(address)
            return False
        return True

    def _tidy(self) -> None:
        """Removes what was never finished, and what others are not about to finish."""
        before = time.time() - _GIVEN_UP_S
        with suppress(OSError):
            for path in (self._folder / _UNFINISHED).iterdir():
                if path.stat().st_mtime < before:
                    path.unlink(missing_ok=True)


def _settle(descriptor: int, making: Path, place: Path) -> None:
    """Moves what is written to its place, once the disk has all of it; and has the disk remember the move."""
    os.fsync(descriptor)
    place.parent.mkdir(parents=True, exist_ok=True)
    making.replace(place)
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _digest(source: io.BufferedReader) -> str:
    source.seek(0)
    return hashlib.file_digest(source, "sha256").hexdigest()


def _trouble(address: str, error: OSError) -> Exception:
    """What a failed read means: content that the disk cannot give back any more is corrupt."""
    return Corrupt(address) if error.errno == errno.EIO else Unwritable(str(error))
