"""The page of a system as static files in its bucket, from where a browser loads it."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from runtime.stores.s3.client.credentials import KeySource
from runtime.stores.s3.client.location import BucketLocation, address_of
from runtime.stores.s3.client.objects import Objects

FOLDER = "ui"
FIRST = "index.html"
_KINDS = frozenset((".html", ".js", ".css", ".svg", ".png", ".ico", ".json", ".webmanifest"))


async def deploy_page(
    system: str, location: BucketLocation, credentials: KeySource | None = None
) -> list[str]:
    """Write the page to the bucket, beside the queues in it; return the written keys."""
    objects = Objects(replace(location, prefix=""), credentials)
    found = page_files(system)
    try:
        # Write the first file last, so that a browser that loads it finds what it refers to.
        for name in sorted(found, key=lambda each: each == FIRST):
            await objects.put(f"{FOLDER}/{name}", found[name].read_bytes())
    finally:
        await objects.close()
    return [f"{FOLDER}/{name}" for name in found]


def page_url(location: BucketLocation) -> str:
    """Return the URL of the page."""
    address = address_of(location)
    return f"{address.origin}{address.root}/{FOLDER}/{FIRST}?{urlencode(page_query(location))}"


def page_query(location: BucketLocation) -> dict[str, str]:
    """Return the query parameters of the page's URL, which name the location of the bucket."""
    return {"region": location.region, **({"queue": location.prefix.rstrip("/")} if location.prefix else {})}


def has_page(system: str) -> bool:
    """Whether a system has a page."""
    try:
        return bool(page_files(system))
    except FileNotFoundError:
        return False


def page_files(system: str) -> dict[str, Path]:
    """Find the files of a page by name, both the written and the generated ones."""
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
