"""Credentials of a store, from the chain in which every S3 client looks for them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.stores.s3.client.errors import Refused

if TYPE_CHECKING:
    from obstore.store import S3Credential

_ASKED_AGAIN = timedelta(minutes=10)
"""obstore asks again five minutes before a key ends. botocore renews one ten minutes before its end at the
latest, so a key that was given out is used for five minutes at most, and is good for ten."""


class AccessKey(NamedTuple):
    """The access key that signs requests; a temporary one has a session token."""

    access: str
    secret: str
    token: str | None = None


class KeySource:
    """The provider chain: variables, else a profile, a role, the machine. Temporary keys are refreshed."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._temporary: Any = None
        self._key = _read_variables(environ)

    async def key(self) -> AccessKey:
        """Return the key to use now."""
        if self._key is not None:
            return self._key
        if self._temporary is None:
            self._temporary = await asyncio.to_thread(_load_chain)
        if self._is_temporary and self._temporary.refresh_needed():
            return await asyncio.to_thread(self._read)
        return self._read()

    def provide(self) -> S3Credential:
        """Return the key for obstore, which caches it until it expires and calls from its own thread."""
        key = self._key or self._read()
        return {
            "access_key_id": key.access,
            "secret_access_key": key.secret,
            "token": key.token,
            "expires_at": datetime.now(UTC) + _ASKED_AGAIN if self._key is None else None,
        }

    @property
    def _is_temporary(self) -> bool:
        return hasattr(self._temporary, "refresh_needed")

    def _read(self) -> AccessKey:
        """Read the current key of the chain; one that expires soon is refreshed, which may take a while."""
        if self._temporary is None:
            self._temporary = _load_chain()
        frozen = self._temporary.get_frozen_credentials()
        key = AccessKey(frozen.access_key, frozen.secret_key, frozen.token)
        if not self._is_temporary:
            self._key = key
        return key


def _read_variables(environ: Mapping[str, str]) -> AccessKey | None:
    """Read the key that the chain would find first, which spares most processes importing the chain."""
    access, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if not access or not secret:
        return None
    return AccessKey(
        access, secret, environ.get("AWS_SESSION_TOKEN") or environ.get("AWS_SECURITY_TOKEN") or None
    )


def _load_chain() -> Any:
    import botocore.session
    from botocore.exceptions import BotoCoreError

    try:
        found = botocore.session.get_session().get_credentials()
    except BotoCoreError as error:
        raise Refused(f"The key for the store cannot be read: {error}") from None
    if found is None:
        raise Refused("There is no key for the store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
    return found
