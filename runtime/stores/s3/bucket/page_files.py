"""The page of a system that a browser gets from the bucket itself: files that are put there as they are."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from runtime.stores.s3.client.credentials import KeySource
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.client.place import BucketPlace, address_of

FOLDER = "ui"
FIRST = "index.html"
_KINDS = frozenset((".html", ".js", ".css", ".svg", ".png", ".ico", ".json", ".webmanifest"))


async def deploy_page(system: str, place: BucketPlace, credentials: KeySource | None = None) -> list[str]:
    """Puts the page into the bucket, beside whatever queues are in it; the keys that were written."""
    objects = Objects(replace(place, prefix=""), credentials)
    found = page_files(system)
    try:
        # The first file comes last: whoever loads it meanwhile finds what it refers to.
        for name in sorted(found, key=lambda each: each == FIRST):
            await objects.put(f"{FOLDER}/{name}", found[name].read_bytes())
    finally:
        await objects.close()
    return [f"{FOLDER}/{name}" for name in found]


def page_url(place: BucketPlace) -> str:
    """Where a browser finds the page."""
    address = address_of(place)
    return f"{address.origin}{address.root}/{FOLDER}/{FIRST}?{urlencode(asked_of(place))}"


def asked_of(place: BucketPlace) -> dict[str, str]:
    """What the address of a page says of the place that it is to show."""
    return {"region": place.region, **({"queue": place.prefix.rstrip("/")} if place.prefix else {})}


def has_page(system: str) -> bool:
    """Whether there is a page of a system."""
    try:
        return bool(page_files(system))
    except FileNotFoundError:
        return False


def page_files(system: str) -> dict[str, Path]:
    """The files of a page by name: those that are written by hand, and those that come from the spec."""
    found: dict[str, Path] = {}
    for package in ("handlers", "generated"):
        spec = importlib.util.find_spec(package)
        roots = spec.submodule_search_locations if spec is not None else None
        folder = Path((roots or [package])[0]) / system / "page"
        for path in sorted(folder.rglob("*")):
            if path.suffix in _KINDS:
                found[path.relative_to(folder).as_posix()] = path
    if FIRST not in found:
        raise FileNotFoundError(f"There is no page of {system}.")
    return found
