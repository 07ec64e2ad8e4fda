"""A content-addressed folder: blobs by SHA-256, written to a temporary file and renamed after fsync."""

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
_CHUNK_BYTES = 1 << 18
_UNFINISHED = "unfinished"
_UNFINISHED_MAX_AGE_S = 3600
"""An unfinished file that was not touched for so long was left behind by a killed process."""
_MAX_FINGERPRINTS = 100_000
"""The number of blobs whose fingerprint of the last verification is cached."""
_SETTLED_NS = 2_000_000_000
"""The age of the last change of a file from which on its status shows the next change.

Clocks of file systems are coarse: two changes within one tick have the same time.
"""
_ALWAYS_HASHED_BYTES = 1 << 20
"""Content up to this size is hashed before every response, which takes less than a millisecond."""


def is_address(text: str) -> bool:
    """Whether a text is a valid address, a SHA-256 in hex."""
    return _ADDRESS.fullmatch(text) is not None


class TooLarge(Exception):
    """Content is larger than the limit of the store."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class WrongAddress(Exception):
    """Content does not match its address."""

    def __init__(self, wanted: str, actual: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.actual = actual


class FolderUnusable(Exception):
    """The folder cannot be used: it is full, or not writable."""


class CorruptBlob(Exception):
    """The stored content does not match its address any more, or cannot be read."""


class FileFingerprint(NamedTuple):
    """The status that changes with a file; compared instead of its content, where hashing costs too much."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, source: io.BufferedReader) -> FileFingerprint:
        status = os.fstat(source.fileno())
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def has_changed(self, source: io.BufferedReader) -> bool:
        """Whether an open file was written to. A file that is replaced meanwhile keeps its content."""
        now = FileFingerprint.of(source)
        return (now.size, now.modified_ns) != (self.size, self.modified_ns)


class StoredBlob(NamedTuple):
    """A stored blob: its address, its size, and whether it was stored already."""

    address: str
    size: int
    is_known: bool


class BlobFolder:
    """The folder of blobs. Any number of processes may use it concurrently."""

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder = Path(folder)
        self._max_bytes = max_bytes
        self._fingerprints: BoundedMap[FileFingerprint] = BoundedMap(_MAX_FINGERPRINTS)
        self._has_cleaned_up = False

    async def put(
        self, chunks: AsyncIterator[bytes], wanted: str | None, announced: int | None
    ) -> StoredBlob:
        """Store content atomically; nothing of it is left where it cannot be stored."""
        if announced is not None and announced > self._max_bytes:
            raise TooLarge(self._max_bytes)
        if not self._has_cleaned_up:
            self._has_cleaned_up = True
            await asyncio.to_thread(self._remove_unfinished)
        temporary = self._folder / _UNFINISHED / uuid4().hex
        try:
            return await self._put(chunks, temporary, wanted)
        except OSError as error:
            raise FolderUnusable(str(error)) from None
        finally:
            with suppress(OSError):
                temporary.unlink()

    async def verify(self, address: str) -> FileFingerprint | None:
        """Verify the content under an address; None where there is none.

        Raises CorruptBlob where it does not match its address. Small content is hashed each time, large
        content again as soon as its file has changed.
        """
        path = self._find_path(address)
        if path is None:
            return None
        try:
            with path.open("rb") as source:
                return await self._verify(
                    address, source, must_hash=FileFingerprint.of(source).size <= _ALWAYS_HASHED_BYTES
                )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _to_storage_error(address, error) from None

    async def read(
        self, address: str, fingerprint: FileFingerprint, first: int, last: int
    ) -> AsyncIterator[bytes]:
        """Read a range of verified content; raises CorruptBlob before the last chunk of wrong content.

        A read of the whole content is hashed on its way out, so that a disk fault that leaves no trace in the
        status of the file is found too. A range is served as long as the file does not change.
        """
        try:
            with (self._folder / address[:2] / address).open("rb") as source:
                if FileFingerprint.of(source) != fingerprint:
                    fingerprint = await self._verify(address, source, must_hash=True)
                async for chunk in self._read_chunks(address, source, fingerprint, first, last):
                    yield chunk
        except OSError as error:
            self._fingerprints.remove(address)
            raise _to_storage_error(address, error) from None

    async def _read_chunks(
        self, address: str, source: io.BufferedReader, fingerprint: FileFingerprint, first: int, last: int
    ) -> AsyncIterator[bytes]:
        digest = hashlib.sha256() if (first, last) == (0, fingerprint.size) else None
        source.seek(first)
        while first < last:
            chunk = await asyncio.to_thread(source.read, min(_CHUNK_BYTES, last - first))
            first += len(chunk)
            if digest is not None:
                digest.update(chunk)
            if first == last or not chunk:
                # Hold the last chunk back until the content is known to be right.
                is_right = digest is None or digest.hexdigest() == address
                if not chunk or not is_right or fingerprint.has_changed(source):
                    self._fingerprints.remove(address)
                    raise CorruptBlob(address)
            yield chunk

    async def _verify(self, address: str, source: io.BufferedReader, *, must_hash: bool) -> FileFingerprint:
        """Raise CorruptBlob unless a file matches its address, or is unchanged since it last did."""
        fingerprint = FileFingerprint.of(source)
        if not must_hash and self._fingerprints.get(address) == fingerprint:
            return fingerprint
        self._fingerprints.remove(address)
        began = time.time_ns()
        if await asyncio.to_thread(_compute_digest, source) != address:
            raise CorruptBlob(address)
        is_settled = max(fingerprint.modified_ns, fingerprint.changed_ns) < began - _SETTLED_NS
        if (
            is_settled
            and FileFingerprint.of(source) == fingerprint
            and self._fingerprints.get(address) is None
        ):
            self._fingerprints.add(address, fingerprint)
        return fingerprint

    async def _put(self, chunks: AsyncIterator[bytes], temporary: Path, wanted: str | None) -> StoredBlob:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with temporary.open("xb") as target:
            async for chunk in chunks:
                size += len(chunk)
                if size > self._max_bytes:
                    raise TooLarge(self._max_bytes)
                digest.update(chunk)
                await asyncio.to_thread(target.write, chunk)
            address = digest.hexdigest()
            if wanted is not None and address != wanted:
                raise WrongAddress(wanted, address)
            path = self._folder / address[:2] / address
            is_known = await self._is_intact(address, path)
            if not is_known:
                await asyncio.to_thread(_publish, target.fileno(), temporary, path)
        return StoredBlob(address, size, is_known)

    def _find_path(self, address: str) -> Path | None:
        """Find the path of an address; None for an invalid address."""
        return self._folder / address[:2] / address if is_address(address) else None

    async def _is_intact(self, address: str, path: Path) -> bool:
        """Whether content exists and is right: always hashed, so that an upload repairs any corruption."""
        try:
            with path.open("rb") as source:
                await self._verify(address, source, must_hash=True)
        except (CorruptBlob, OSError):
            self._fingerprints.remove(address)
            return False
        return True

    def _remove_unfinished(self) -> None:
        """Remove unfinished files that no other process is still writing."""
        before = time.time() - _UNFINISHED_MAX_AGE_S
        with suppress(OSError):
            for path in (self._folder / _UNFINISHED).iterdir():
                if path.stat().st_mtime < before:
                    path.unlink(missing_ok=True)


def _publish(descriptor: int, temporary: Path, path: Path) -> None:
    """Publish a file atomically and durably: fsync it, rename it, and fsync the folder."""
    os.fsync(descriptor)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _compute_digest(source: io.BufferedReader) -> str:
    source.seek(0)
    return hashlib.file_digest(source, "sha256").hexdigest()


def _to_storage_error(address: str, error: OSError) -> Exception:
    """Convert a failed read to an error: EIO means that the content is corrupt."""
    return CorruptBlob(address) if error.errno == errno.EIO else FolderUnusable(str(error))
