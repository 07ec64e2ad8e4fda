"""Where a bucket is: the address of its store, and how its keys become part of an address."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from runtime.s3.errors import Refused


@dataclass(frozen=True, kw_only=True)
class Place:
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


@dataclass(frozen=True)
class Address:
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
    def tls(self) -> ssl.SSLContext | None:
        if not self.secure:
            return None
        authority = os.environ.get("AWS_CA_BUNDLE") or None
        try:
            return ssl.create_default_context(cafile=authority)
        except OSError as error:
            raise Refused(f"AWS_CA_BUNDLE: {authority} cannot be used: {error.strerror or error}.") from None


def address_of(place: Place, environ: Mapping[str, str] = os.environ) -> Address:
    """Where the requests for a bucket go."""
    if not place.bucket:
        raise Refused("No bucket is named: set S3_BUCKET.")
    if not place.region:
        raise Refused("No region is named: set S3_REGION.")
    if place.prefix and {"", ".", ".."} & set(place.prefix.removesuffix("/").split("/")):
        # Servers that take keys for paths would look in another folder, or in another bucket.
        raise Refused(
            f'"{place.prefix.removesuffix("/")}" cannot be what keys begin with: it is no plain path.'
        )
    given = place.endpoint or environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    if not given:
        ending = "amazonaws.com.cn" if place.region.startswith("cn-") else "amazonaws.com"
        host = f"s3.{place.region}.{ending}"
        if "." in place.bucket:
            # The certificate covers one name before the host's, and such a bucket would be several.
            return Address(host, 443, True, f"/{place.bucket}")
        return Address(f"{place.bucket}.{host}", 443, True, "")
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Refused(
            f'"{given}" is no address of a store: set S3_ENDPOINT to http:// or https:// and a host.'
        )
    secure = parts.scheme == "https"
    return Address(
        parts.hostname, port or (443 if secure else 80), secure, f"{parts.path.rstrip('/')}/{place.bucket}"
    )
