"""Requests to S3 that botocore signs and sends in a thread, for what obstore has no words for.

obstore lists a thousand objects at a time, deletes without a condition and shows no headers, so the time of
the store is not seen. A client of botocore could do it all, at more than twice the processor time of this.
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
from runtime.stores.s3.client.place import BucketPlace, address_of, authority_file
from runtime.stores.s3.client.responses import explain_botocore, parse_response, refusal
from runtime.stores.s3.client.retries import retry
from runtime.stores.s3.client.server_clock import ServerClock

_THREADS = 16
_NONE: Mapping[str, str] = {}


class BucketRequest(NamedTuple):
    """A request without a body; without a key it is about the bucket."""

    method: str
    needed: str
    """The permission that a key needs for it."""
    key: str | None = None
    query: Mapping[str, str] = _NONE
    headers: Mapping[str, str] = _NONE


class SignedRequests:
    """The requests for one place, and the clock that their answers tell."""

    def __init__(self, place: BucketPlace, credentials: KeySource) -> None:
        self._place = place
        self._credentials = credentials
        self._address = address_of(place)
        self._authority = authority_file() if self._address.secure else None
        self._threads: ThreadPoolExecutor | None = None
        self._session: Any = None
        self._signer: tuple[AccessKey, Any] | None = None
        self.clock = ServerClock()

    async def ask(self, asked: BucketRequest) -> bytes:
        """The body of an answer, else an error says what the store meant; tries again while it is away."""
        return await retry(self._place.tries, Away, partial(self._once, asked))

    def close(self) -> None:
        """Ends the connections. What is asked after that opens new ones."""
        session, self._session = self._session, None
        threads, self._threads = self._threads, None
        if session is not None:
            session.close()
        if threads is not None:
            threads.shutdown(wait=False)

    async def _once(self, asked: BucketRequest) -> bytes:
        request = self._signed(asked, await self._credentials.key())
        if self._session is None:
            self._open()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._send, self._session, request, asked.needed)

    def _open(self) -> None:
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="s3")
        self._session = URLLib3Session(
            verify=self._authority or True,
            proxies={} if self._address.is_local else get_environ_proxies(self._address.origin),
            timeout=self._place.timeout_s,
            max_pool_connections=_THREADS,
        )

    def _signed(self, asked: BucketRequest, key: AccessKey) -> Any:
        from botocore.awsrequest import AWSRequest

        address = self._address
        path = address.root
        if asked.key is not None:
            path += f"/{quote(self._place.prefix + asked.key)}"
        query = f"?{urlencode(asked.query, quote_via=quote)}" if asked.query else ""
        request = AWSRequest(asked.method, f"{address.origin}{path or '/'}{query}", dict(asked.headers))
        if self._signer is None or self._signer[0] != key:
            from botocore.auth import S3SigV4Auth
            from botocore.credentials import Credentials as BotoKey

            self._signer = key, S3SigV4Auth(BotoKey(*key), "s3", self._place.region)
        self._signer[1].add_auth(request)
        return request.prepare()

    def _send(self, session: Any, request: Any, needed: str) -> bytes:
        from botocore.exceptions import BotoCoreError

        began = time.time()
        try:
            told = session.send(request)
            body: bytes = told.content
        except BotoCoreError as error:
            raise explain_botocore(error, self._place) from None
        if (date := told.headers.get("date")) is not None:
            self.clock.heard(date, began, time.time())
        if told.headers.get("content-length", str(len(body))) != str(len(body)):
            raise Away("The store does not answer: the connection ended.")
        if 200 <= told.status_code < 300:
            return body
        raise refusal(parse_response(told.status_code, told.headers, body), self._place, needed)
