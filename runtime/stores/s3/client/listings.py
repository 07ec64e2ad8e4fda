"""Listings of a bucket as documents: asked for page by page, with a bound of their length."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from runtime.stores.s3.client.place import BucketPlace
from runtime.stores.s3.client.responses import NoStore


class ListedObject(NamedTuple):
    """A line of a listing."""

    key: str
    etag: str
    size: int
    changed: datetime


class Page(NamedTuple):
    """Some lines of a listing in the order of their keys; without a token nothing follows."""

    entries: Sequence[ListedObject]
    token: str | None


def parse_document(body: bytes, tag: str, place: BucketPlace) -> ElementTree.Element:
    """What a bucket answers to a question about itself, which is a document of this tag."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise NoStore(place, f"it sends no {tag}") from None
    if root.tag.rpartition("}")[2] != tag:
        raise NoStore(place, f"it sends no {tag}")
    return root


def parse_page(body: bytes, place: BucketPlace) -> Page:
    """A page of a listing. The prefix of the place is cut off its keys."""
    root = parse_document(body, "ListBucketResult", place)
    space, cut = root.tag.rfind("}") + 1, len(place.prefix)
    lines: list[dict[str, str]] = []
    tags: dict[str, str] = {}
    for part in root:
        name = part.tag[space:]
        if name == "Contents":
            lines.append({each.tag[space:]: each.text or "" for each in part})
        else:
            tags[name] = part.text or ""
    is_url = tags.get("EncodingType") == "url"
    entries = [
        ListedObject(
            (unquote_plus(line["Key"]) if is_url else line["Key"])[cut:],
            line["ETag"],
            int(line["Size"]),
            _moment(line["LastModified"]),
        )
        for line in lines
    ]
    return Page(entries, tags.get("NextContinuationToken") or None)


@lru_cache(1024)
def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
