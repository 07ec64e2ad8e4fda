"""Requests to S3 that botocore signs and sends in a thread, for what obstore does not offer.

obstore lists a thousand objects at a time, deletes without a condition and shows no headers, so the time of
the store is unknown. A client of botocore could do it all, at more than twice the processor time of this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from runtime.stores.s3.client.credentials import AccessKey, KeySource
from runtime.stores.s3.client.errors import Away
from runtime.stores.s3.client.location import BucketLocation, address_of, authority_file
from runtime.stores.s3.client.responses import explain_botocore, parse_response, refusal
from runtime.stores.s3.client.retries import retry
from runtime.stores.s3.client.server_clock import ServerClock

_THREADS = 16
_NONE: Mapping[str, str] = {}


class BucketRequest(NamedTuple):
    """A request without a body, to an object or, without a key, to the bucket."""

    method: str
    needed: str
    """The permission that the access key needs."""
    key: str | None = None
    query: Mapping[str, str] = _NONE
    headers: Mapping[str, str] = _NONE


class SignedRequests:
    """The requests for one location, and the server's clock by their responses."""

    def __init__(self, location: BucketLocation, credentials: KeySource) -> None:
        self._location = location
        self._credentials = credentials
        self._address = address_of(location)
        self._authority = authority_file() if self._address.secure else None
        self._threads: ThreadPoolExecutor | None = None
        self._session: Any = None
        self._signer: tuple[AccessKey, Any] | None = None
        self.clock = ServerClock()

    async def send(self, request: BucketRequest) -> bytes:
        """Send a request, with retries while the store is away; return the body of the response."""
        return await retry(self._location.tries, Away, partial(self._once, request))

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        session, self._session = self._session, None
        threads, self._threads = self._threads, None
        if session is not None:
            session.close()
        if threads is not None:
            threads.shutdown(wait=False)

    async def _once(self, request: BucketRequest) -> bytes:
        signed = self._sign(request, await self._credentials.key())
        if self._session is None:
            self._open()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._send, self._session, signed, request.needed)

    def _open(self) -> None:
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="s3")
        self._session = URLLib3Session(
            verify=self._authority or True,
            proxies={} if self._address.is_local else get_environ_proxies(self._address.origin),
            timeout=self._location.timeout_s,
            max_pool_connections=_THREADS,
        )

    def _sign(self, request: BucketRequest, key: AccessKey) -> Any:
        from botocore.awsrequest import AWSRequest

        address = self._address
        path = address.root
        if request.key is not None:
            path += f"/{quote(self._location.prefix + request.key)}"
        query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
        signed = AWSRequest(request.method, f"{address.origin}{path or '/'}{query}", dict(request.headers))
        if self._signer is None or self._signer[0] != key:
            from botocore.auth import S3SigV4Auth
            from botocore.credentials import Credentials as BotoKey

            self._signer = key, S3SigV4Auth(BotoKey(*key), "s3", self._location.region)
        self._signer[1].add_auth(signed)
        return signed.prepare()

    def _send(self, session: Any, request: Any, needed: str) -> bytes:
        from botocore.exceptions import BotoCoreError

        began = time.time()
        try:
            response = session.send(request)
            body: bytes = response.content
        except BotoCoreError as error:
            raise explain_botocore(error, self._location) from None
        if (date := response.headers.get("date")) is not None:
            self.clock.observe(date, began, time.time())
        if response.headers.get("content-length", str(len(body))) != str(len(body)):
            raise Away("The store does not answer: the connection ended.")
        if 200 <= response.status_code < 300:
            return body
        raise refusal(parse_response(response.status_code, response.headers, body), self._location, needed)
