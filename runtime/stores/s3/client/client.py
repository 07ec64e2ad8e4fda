"""The data path: obstore's stores for one location."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.stores.s3.client.credentials import KeySource
from runtime.stores.s3.client.location import BucketLocation, address_of, authority_file
from runtime.stores.s3.client.retries import FIRST_PAUSE_S, LONGEST_PAUSE_S

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Store

_IDLE_S = 20.0
"""Idle timeout of a pooled connection."""


class DataClient:
    """Clients of two kinds: those that retry requests, and those for writes that must not be repeated.

    obstore takes a connection that ended without an answer for a request that was not sent. A conditional
    write that was carried out would be repeated then, and fail by its own first try.
    """

    def __init__(self, location: BucketLocation, credentials: KeySource) -> None:
        self._location = location
        self._credentials = credentials
        self._address = address_of(location)
        self._authority = authority_file() if self._address.secure else None
        self._stores: dict[tuple[bool, float], S3Store] = {}

    async def store(self, *, repeats: bool, size: int = 0) -> S3Store:
        """Return the client for a body of a size, created lazily; raises Refused where there is no key."""
        which = repeats, patience_s(self._location, size)
        if which not in self._stores:
            await self._credentials.key()
            self._stores[which] = self._new_store(self._location.tries - 1 if repeats else 0, which[1])
        return self._stores[which]

    def close(self) -> None:
        """Drop the connections; a later request opens new ones."""
        self._stores.clear()

    def _new_store(self, retries: int, timeout_s: float) -> S3Store:
        from obstore.store import S3Store

        address, location = self._address, self._location
        is_of_the_bucket = not address.root
        url = address.origin + address.root.removesuffix(f"/{location.bucket}")
        config: S3Config = {
            "endpoint": url,
            # Else a variable that obstore reads itself comes before what was set.
            "aws_endpoint_url_s3": url,
            "region": location.region,
            "virtual_hosted_style_request": is_of_the_bucket,
            "conditional_put": "etag",
            # One request for each object: not all stores have the other one.
            "disable_bulk_delete": True,
            "skip_signature": False,
        }
        options: ClientConfig = {
            "allow_http": True,
            "connect_timeout": _span(location.timeout_s),
            "timeout": _span(timeout_s),
            "pool_idle_timeout": _span(_IDLE_S),
        }
        if address.is_local:
            # Only where a proxy is named can one be left out, be it named here or by a variable.
            options |= {"proxy_url": address.origin, "proxy_excludes": address.host}
        if self._authority is not None:
            options["root_certificate"] = Path(self._authority).read_bytes()
        retry: RetryConfig = {
            "max_retries": retries,
            "backoff": {
                "init_backoff": _span(FIRST_PAUSE_S),
                "max_backoff": _span(LONGEST_PAUSE_S),
                "base": 2,
            },
        }
        return S3Store(
            location.bucket,
            config=config,
            client_options=options,
            retry_config=retry,
            credential_provider=self._credentials.provide,
        )


def patience_s(location: BucketLocation, size: int) -> float:
    """Return the timeout of a request with a body, one second a megabyte more for slow networks.

    A client has one timeout for all its requests, so the extra time is a power of two: there are few clients.
    """
    megabytes = size >> 20
    return location.timeout_s + (2 ** megabytes.bit_length() if megabytes else 0)


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)
