"""The answers of S3: what their status means, and the listings in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from runtime.s3.errors import Away, Gone, NotMatched, ObjectError, Refused
from runtime.s3.place import Place
from runtime.s3.wire import Told

_CODE = re.compile(rb"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]*)</Message>")
_NOT_YET = {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling"}
_WRONG_KEY = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
    "TokenRefreshRequired",
    "AuthorizationHeaderMalformed",
}


class TooSkewed(Refused):
    """The clocks of the two sides are too far apart for a signature to hold."""


class NoBucket(Refused):
    """There is no such bucket."""


class NoStore(Refused):
    """Whatever answers, it is not S3, or not where its buckets are."""

    def __init__(self, place: Place, seen: str) -> None:
        super().__init__(f"What answers is no S3 store ({seen}): check {place.names.endpoint}.")


class NotKnown(Refused):
    """The store has no such operation, or not with such a condition."""


class Listed(NamedTuple):
    """A listing as it was told; each line has the texts of its tags."""

    lines: list[dict[str, str]]
    tags: dict[str, str]

    def key(self, tag: str) -> str:
        """A key that is told beside the lines."""
        return _decoded(self.tags.get(tag, ""), self.tags)

    def of(self, key: str) -> Iterator[dict[str, str]]:
        """The lines of exactly this key."""
        return (line for line in self.lines if line["Key"] == key)


def refusal(told: Told, place: Place, needed: str) -> ObjectError:
    """What an answer other than the wanted one means, to a request that a key needs a permission for."""
    bucket, names = place.bucket, place.names
    code = _text(_CODE.search(told.body))
    status = told.status
    said = f"{status} {code}".strip()
    if status in {409, 412} or code in {"PreconditionFailed", "ConditionalRequestConflict"}:
        return NotMatched(said)
    if code == "NoSuchBucket":
        return NoBucket(f'There is no bucket "{bucket}" at the store: set {names.bucket}, or make it.')
    if status == 404:
        return Gone(said)
    if status == 501 or code == "NotImplemented":
        return NotKnown(f"The store does not do what was asked of it: {said}.")
    if status >= 500 or status in {408, 429} or code in _NOT_YET:
        return Away(f"The store answers {said}.")
    if code == "RequestTimeTooSkewed":
        return TooSkewed("The clock of this machine and that of the store are too far apart: set it right.")
    if code in _WRONG_KEY:
        return Refused(
            f"The store does not take the key ({code}): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY "
            f"and {names.region}."
        )
    if status in {301, 307, 308}:
        where = told.header(b"x-amz-bucket-region")
        there = f" to {where}" if where else ""
        return Refused(f'The bucket "{bucket}" is elsewhere: set {names.region}{there}.')
    if status in {401, 403}:
        return Refused(
            f'The key may not do this in the bucket "{bucket}" ({said}): let it have {needed}, '
            "or take another one."
        )
    why = " ".join(f"{said} {_text(_MESSAGE.search(told.body))}".split()).rstrip(".")
    return Refused(f"The store refuses: {why}.")


def document(body: bytes, tag: str, place: Place) -> ElementTree.Element:
    """What a bucket answers to a question about itself, which is a document of this tag."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise NoStore(place, f"it sends no {tag}") from None
    if root.tag.rpartition("}")[2] != tag:
        raise NoStore(place, f"it sends no {tag}")
    return root


def listed(root: ElementTree.Element, line: str) -> Listed:
    """The lines of a listing, whose tag is `line`, and what is told beside them."""
    lines: list[dict[str, str]] = []
    tags: dict[str, str] = {}
    space = root.tag.rfind("}") + 1
    for part in root:
        name = part.tag[space:]
        if name == line:
            lines.append({each.tag[space:]: each.text or "" for each in part})
        else:
            tags[name] = part.text or ""
    for each in lines:
        each["Key"] = _decoded(each.get("Key", ""), tags)
    return Listed(lines, tags)


@lru_cache(1024)
def moment(text: str) -> datetime:
    """A time of a listing (ISO 8601) or of a header."""
    if text[4:5] == "-":
        return datetime.fromisoformat(text).astimezone(UTC)
    return parsedate_to_datetime(text).astimezone(UTC)


class ServerClock:
    """How far a server's clock is ahead of ours, from the `Date` of its answers.

    That has whole seconds. Each answer says between which bounds the distance is, and those of many answers
    together are close to each other.
    """

    _KEEP_S = 60.0

    def __init__(self) -> None:
        self._bounds: tuple[float, float] | None = None
        self._since = 0.0

    @property
    def offset_s(self) -> float | None:
        return None if self._bounds is None else sum(self._bounds) / 2

    def heard(self, date: str, asked_at: float, answered_at: float) -> None:
        """One answer: when it was asked for and when it was there by our clock."""
        try:
            theirs = moment(date).timestamp()
        except (ValueError, TypeError):
            return
        low, high = theirs - answered_at, theirs + 1 - asked_at
        if self._bounds is not None and abs(answered_at - self._since) < self._KEEP_S:
            closer = max(low, self._bounds[0]), min(high, self._bounds[1])
            if closer[0] <= closer[1]:
                self._bounds = closer
                return
        # The first answer, a clock that was set since, or bounds that are too old.
        self._bounds, self._since = (low, high), answered_at


def _text(found: re.Match[bytes] | None) -> str:
    return "" if found is None else found[1].decode("utf-8", "replace")


def _decoded(key: str, tags: dict[str, str]) -> str:
    return unquote_plus(key) if tags.get("EncodingType") == "url" else key
