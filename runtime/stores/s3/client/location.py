"""The location of a bucket: the address of its store, and the path of its keys."""

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
"""Characters that occur only in a badly copied address."""


class Names(NamedTuple):
    """Names of the settings of a location for messages: the variables, where there are some."""

    endpoint: str = "the endpoint"
    bucket: str = "the bucket"
    region: str = "the region"
    prefix: str = "the prefix"


@dataclass(frozen=True, kw_only=True)
class BucketLocation:
    """A bucket, or a prefix of it."""

    bucket: str
    endpoint: str | None = None
    """URL of the store; without it AWS_ENDPOINT_URL, else AWS."""
    region: str = "us-east-1"
    prefix: str = ""
    """Prefix of all keys, its last `/` included. Callers never see it."""
    timeout_s: float = 10.0
    tries: int = 4
    """Attempts of a request that fails temporarily."""
    connections: int = 64
    names: Names = field(default=Names(), compare=False)
    """For messages, which name the variable to set; not compared, since it is the same location."""


@dataclass(frozen=True)
class StoreAddress:
    """Network address of a bucket."""

    host: str
    port: int
    secure: bool
    root: str
    """Path before `/` and the key of every object."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether it is a loopback address, which no proxy reaches."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def origin(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}"


def authority_file(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the CA file of AWS_CA_BUNDLE, added to the authorities that the machine trusts."""
    if not (named := environ.get("AWS_CA_BUNDLE")):
        return None
    try:
        with Path(named).open("rb"):
            return named
    except OSError as error:
        raise Refused(f"AWS_CA_BUNDLE: {named} cannot be used: {error.strerror or error}.") from None


def location_of(kept: KeptInBucket, values: Mapping[str, Any]) -> BucketLocation:
    """Return the location of entities, by the values of the variables that their spec names."""
    root = values.get(kept.prefix) if kept.prefix else None
    return BucketLocation(
        bucket=str(values[kept.bucket]),
        endpoint=values.get(kept.endpoint) or None,
        region=str(values[kept.region]),
        prefix=f"{root}/" if root else "",
        names=Names(kept.endpoint, kept.bucket, kept.region, kept.prefix or Names().prefix),
    )


def locations_of(lifecycles: Iterable[Lifecycle], values: Mapping[str, Any]) -> list[BucketLocation]:
    """List the distinct locations of the entities of some lifecycles."""
    kept = [found for each in lifecycles if (found := each.stored_as(KeptInBucket)) is not None]
    return list(dict.fromkeys(location_of(each, values) for each in kept))


def address_of(location: BucketLocation, environ: Mapping[str, str] = os.environ) -> StoreAddress:
    """Return the network address of a bucket; raises Refused for a malformed setting."""
    if not location.bucket:
        raise Refused(f"No bucket is named: set {location.names.bucket}.")
    if not location.region:
        raise Refused(f"No region is named: set {location.names.region}.")
    for word, named, text in (
        ("bucket", location.names.bucket, location.bucket),
        ("region", location.names.region, location.region),
    ):
        # Both become part of the address unescaped.
        if _NAME.fullmatch(text) is None:
            raise Refused(
                f'"{text}" is no name of a {word}: set {named} to letters, digits, dots and hyphens.'
            )
    if location.prefix and {"", ".", ".."} & set(location.prefix.removesuffix("/").split("/")):
        # A server that maps keys to paths would traverse to another folder or bucket.
        raise Refused(
            f'"{location.prefix.removesuffix("/")}" cannot be what keys begin with: '
            f"set {location.names.prefix} to a plain name, or to several with / between them."
        )
    defaults = {name: environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")}
    endpoints = {location.names.endpoint: location.endpoint, **defaults}
    name, endpoint = next(((name, url) for name, url in endpoints.items() if url), ("", None))
    if endpoint is None:
        ending = "amazonaws.com.cn" if location.region.startswith("cn-") else "amazonaws.com"
        host = f"s3.{location.region}.{ending}"
        if "." in location.bucket:
            # The wildcard certificate covers one label, and such a bucket has several.
            return StoreAddress(host, 443, True, f"/{location.bucket}")
        return StoreAddress(f"{location.bucket}.{host}", 443, True, "")
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname or _ODD.search(endpoint):
        raise Refused(f'"{endpoint}" is no address of a store: set {name} to http:// or https:// and a host.')
    secure = parts.scheme == "https"
    return StoreAddress(
        parts.hostname, port or (443 if secure else 80), secure, f"{parts.path.rstrip('/')}/{location.bucket}"
    )
