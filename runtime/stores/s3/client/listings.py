"""Parsers of the XML of listings, which come page by page with a bounded length."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from runtime.stores.s3.client.location import BucketLocation
from runtime.stores.s3.client.responses import NoStore


class ListedObject(NamedTuple):
    """An entry of a listing."""

    key: str
    etag: str
    size: int
    changed: datetime


class Page(NamedTuple):
    """A page of a listing in the order of keys; the last page has no continuation token."""

    entries: Sequence[ListedObject]
    token: str | None


def parse_document(body: bytes, tag: str, location: BucketLocation) -> ElementTree.Element:
    """Parse a response of the bucket whose root has this tag; raises NoStore for any other document."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise NoStore(location, f"it sends no {tag}") from None
    if root.tag.rpartition("}")[2] != tag:
        raise NoStore(location, f"it sends no {tag}")
    return root


def parse_page(body: bytes, location: BucketLocation) -> Page:
    """Parse a page of a listing, without the prefix of the location in its keys."""
    root = parse_document(body, "ListBucketResult", location)
    space, cut = root.tag.rfind("}") + 1, len(location.prefix)
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
