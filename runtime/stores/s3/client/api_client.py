"""Versions, tags and settings: operations of S3 by a client of botocore, in a thread."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import threading
from functools import cache, partial
from typing import Any

from runtime.stores.s3.client.credentials import AccessKey, KeySource
from runtime.stores.s3.client.errors import Away
from runtime.stores.s3.client.location import BucketLocation, address_of, authority_file
from runtime.stores.s3.client.permissions import permission
from runtime.stores.s3.client.responses import explain_botocore, explain_client_error
from runtime.stores.s3.client.retries import retry


def open_session() -> Any:
    """Open a session of botocore with the descriptions of S3 that the process has read once."""
    import botocore.session

    made = botocore.session.get_session()
    made.register_component("data_loader", _load_descriptions())
    return made


@cache
def _load_descriptions() -> Any:
    """Return what reads the descriptions and keeps them: to read them anew takes each client 50 ms."""
    import botocore.session

    return botocore.session.get_session().get_component("data_loader")


class ApiClient:
    """A botocore client for one bucket, created lazily since its creation takes a moment."""

    def __init__(self, location: BucketLocation, credentials: KeySource) -> None:
        self._location = location
        self._credentials = credentials
        self._address = address_of(location)
        self._made: tuple[AccessKey, Any] | None = None
        self._making = threading.Lock()

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation on the bucket or an object of it, with retries; return the response."""
        return await retry(self._location.tries, Away, partial(self._once, operation, arguments))

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        with self._making:
            made, self._made = self._made, None
        if made is not None:
            made[1].close()

    def client(self, key: AccessKey) -> Any:
        """Return the client that signs with a key."""
        with self._making:
            if self._made is None or self._made[0] != key:
                if self._made is not None:
                    self._made[1].close()
                self._made = key, self._new_client(key)
            return self._made[1]

    async def _once(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        key = await self._credentials.key()
        return await asyncio.to_thread(self._call, key, operation, arguments)

    def _call(self, key: AccessKey, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        client = self.client(key)
        try:
            response: dict[str, Any] = getattr(client, operation)(Bucket=self._location.bucket, **arguments)
            return response
        except ClientError as error:
            raise explain_client_error(error, self._location, permission(operation)) from None
        except BotoCoreError as error:
            raise explain_botocore(error, self._location) from None
        except ResponseParserError:
            raise Away("The store does not answer: its response is cut off.") from None

    def _new_client(self, key: AccessKey) -> Any:
        from botocore.config import Config

        location, address = self._location, self._address
        config = Config(
            connect_timeout=location.timeout_s,
            read_timeout=location.timeout_s,
            # Tries are counted here, where they can be given up between two of them.
            retries={"total_max_attempts": 1, "mode": "standard"},
            s3={"addressing_style": "path" if address.root else "virtual"},
            signature_version="s3v4",
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            parameter_validation=False,
            # None stands for the proxies that the environment names.
            proxies={} if address.is_local else None,
        )
        host = address.origin + address.root.removesuffix(f"/{location.bucket}")
        made = open_session().create_client(
            "s3",
            region_name=location.region,
            endpoint_url=host if address.root else host.replace(f"{location.bucket}.", "", 1),
            aws_access_key_id=key.access,
            aws_secret_access_key=key.secret,
            aws_session_token=key.token,
            config=config,
            verify=authority_file(),
        )
        made.meta.events.register("before-call.s3", _add_digest)
        made.meta.events.register("before-parse.s3", _check_length)
        return made


def _add_digest(params: dict[str, Any], **_: object) -> None:
    """Add the Content-MD5 that older stores require; newer ones take the checksum of botocore."""
    body = params.get("body")
    if params.get("method") == "PUT" and isinstance(body, bytes) and body:
        digest = hashlib.md5(body, usedforsecurity=False).digest()
        params["headers"]["Content-MD5"] = base64.b64encode(digest).decode()


def _check_length(response_dict: dict[str, Any], **_: object) -> None:
    """Raise Away for a truncated body, which botocore would parse as a missing setting."""
    length = response_dict["headers"].get("content-length")
    if length is not None and length != str(len(response_dict["body"])):
        raise Away("The store does not answer: the connection ended.")
