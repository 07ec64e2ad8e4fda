"""Where a bucket is: the address of its store, and how its keys become part of an address."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from runtime.model.lifecycles import Lifecycle
from runtime.stores.layouts.s3 import KeptInBucket
from runtime.stores.s3.client.errors import Refused

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_ODD = re.compile(r"[^!-~]")
"""What an address has only where it was copied badly."""


class Names(NamedTuple):
    """What those who set it call each part of a place: the variables, where it comes from some."""

    endpoint: str = "the endpoint"
    bucket: str = "the bucket"
    region: str = "the region"
    prefix: str = "the prefix"


@dataclass(frozen=True, kw_only=True)
class BucketPlace:
    """A bucket, or what of it is below a prefix."""

    bucket: str
    endpoint: str | None = None
    """The store; without it that of AWS, or what AWS_ENDPOINT_URL says."""
    region: str = "us-east-1"
    prefix: str = ""
    """What all keys begin with, its last `/` included. Callers never see it."""
    timeout_s: float = 10.0
    tries: int = 4
    """How often a request is made that the store cannot answer at the moment."""
    connections: int = 64
    names: Names = field(default=Names(), compare=False)
    """For messages, which have to say what is to be set; it is the same place by other names."""


@dataclass(frozen=True)
class StoreAddress:
    """A place on the network."""

    host: str
    port: int
    secure: bool
    root: str
    """What the path of every object begins with, before `/` and its key."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, where no proxy of the network leads to."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def origin(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}"


def authority_file(environ: Mapping[str, str] = os.environ) -> str | None:
    """The file whose certificates AWS_CA_BUNDLE adds to those that the machine trusts."""
    if not (named := environ.get("AWS_CA_BUNDLE")):
        return None
    try:
        with Path(named).open("rb"):
            return named
    except OSError as error:
        raise Refused(f"AWS_CA_BUNDLE: {named} cannot be used: {error.strerror or error}.") from None


def place_of(kept: KeptInBucket, values: Mapping[str, Any]) -> BucketPlace:
    """Where entities are, by the values of the variables that their spec names."""
    root = values.get(kept.prefix) if kept.prefix else None
    return BucketPlace(
        bucket=str(values[kept.bucket]),
        endpoint=values.get(kept.endpoint) or None,
        region=str(values[kept.region]),
        prefix=f"{root}/" if root else "",
        names=Names(kept.endpoint, kept.bucket, kept.region, kept.prefix or Names().prefix),
    )


def places_of(lifecycles: Iterable[Lifecycle], values: Mapping[str, Any]) -> list[BucketPlace]:
    """Every place that entities of some lifecycles are at, once."""
    kept = [found for each in lifecycles if (found := each.stored_as(KeptInBucket)) is not None]
    return list(dict.fromkeys(place_of(each, values) for each in kept))


def address_of(place: BucketPlace, environ: Mapping[str, str] = os.environ) -> StoreAddress:
    """Where the requests for a bucket go."""
    if not place.bucket:
        raise Refused(f"No bucket is named: set {place.names.bucket}.")
    if not place.region:
        raise Refused(f"No region is named: set {place.names.region}.")
    for word, named, text in (
        ("bucket", place.names.bucket, place.bucket),
        ("region", place.names.region, place.region),
    ):
        # Both become part of an address, and nothing in them is escaped there.
        if _NAME.fullmatch(text) is None:
            raise Refused(
                f'"{text}" is no name of a {word}: set {named} to letters, digits, dots and hyphens.'
            )
    if place.prefix and {"", ".", ".."} & set(place.prefix.removesuffix("/").split("/")):
        # Servers that take keys for paths would look in another folder, or in another bucket.
        raise Refused(
            f'"{place.prefix.removesuffix("/")}" cannot be what keys begin with: '
            f"set {place.names.prefix} to a plain name, or to several with / between them."
        )
    usual = {name: environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")}
    told = {place.names.endpoint: place.endpoint, **usual}
    name, given = next(((name, url) for name, url in told.items() if url), ("", None))
    if given is None:
        ending = "amazonaws.com.cn" if place.region.startswith("cn-") else "amazonaws.com"
        host = f"s3.{place.region}.{ending}"
        if "." in place.bucket:
            # The certificate covers one name before the host's, and such a bucket would be several.
            return StoreAddress(host, 443, True, f"/{place.bucket}")
        return StoreAddress(f"{place.bucket}.{host}", 443, True, "")
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname or _ODD.search(given):
        raise Refused(f'"{given}" is no address of a store: set {name} to http:// or https:// and a host.')
    secure = parts.scheme == "https"
    return StoreAddress(
        parts.hostname, port or (443 if secure else 80), secure, f"{parts.path.rstrip('/')}/{place.bucket}"
    )
