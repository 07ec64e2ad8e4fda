"""Helpers of field rules for text and bytes."""

from __future__ import annotations

import hashlib
import re

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def cut(text: str, limit: int) -> str:
    """Truncate a text to so many bytes of UTF-8, at a character boundary."""
    if len(text) * 4 <= limit:
        return text
    return text.encode()[:limit].decode(errors="ignore") if len(text.encode()) > limit else text


def is_uuid(text: str) -> bool:
    """Whether this is a UUID of any version as lowercase text."""
    return _UUID.fullmatch(text) is not None


def is_uuid4(text: str) -> bool:
    """Whether this is a version 4 UUID as lowercase text."""
    return _UUID4.fullmatch(text) is not None


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 in lowercase hex."""
    return hashlib.sha256(content).hexdigest()
