"""A folder of content by its SHA-256: written beside its place, and moved there when the disk has it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from runtime.bounded import BoundedMap

_ADDRESS = re.compile(r"[0-9a-f]{64}")
_PIECE = 1 << 18
_UNFINISHED = "unfinished"
_GIVEN_UP_S = 3600
"""Nobody writes so slowly: what was not touched for so long was left behind by a process that was killed."""
_TRUSTED = 100_000
"""Of how many contents it is remembered that they were right when they were last looked at."""


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
        self._verified: BoundedMap[bool] = BoundedMap(_TRUSTED)
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

    async def size(self, address: str) -> int | None:
        """How much is stored under an address; None where nothing is, or not what belongs there."""
        path = self._place(address)
        if path is None:
            return None
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unwritable(str(error)) from None
        if self._verified.get(address) is None:
            # What a disk has spoilt is not given to anybody. Once it was right it is trusted while we run.
            if await asyncio.to_thread(_digest, path) != address:
                return None
            self._trust(address)
        return size

    async def read(self, address: str, first: int, last: int) -> AsyncIterator[bytes]:
        """A part of content that is there."""
        path = self._place(address)
        if path is None:
            return
        with path.open("rb") as source:
            source.seek(first)
            while first < last and (piece := await asyncio.to_thread(source.read, min(_PIECE, last - first))):
                first += len(piece)
                yield piece

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
            known = await self.size(address) is not None
            if not known:
                await asyncio.to_thread(_settle, target.fileno(), making, place)
                self._trust(address)
        return Stored(address, size, known)

    def _place(self, address: str) -> Path | None:
        """Where content is; an address that is none leads nowhere."""
        return self._folder / address[:2] / address if is_address(address) else None

    def _trust(self, address: str) -> None:
        if self._verified.get(address) is None:
            self._verified.add(address, True)

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


def _digest(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
