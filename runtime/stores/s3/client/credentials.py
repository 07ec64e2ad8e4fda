"""The key for a store, from where every S3 client looks for it."""

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
    """What requests are signed with; one that is lent for a while has a token."""

    access: str
    secret: str
    token: str | None = None


class KeySource:
    """Where keys come from: variables, else a profile, a role, the machine. Lent ones are renewed in time."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._lent: Any = None
        self._key = _from_variables(environ)

    async def key(self) -> AccessKey:
        """The key to use now."""
        if self._key is not None:
            return self._key
        if self._lent is None:
            self._lent = await asyncio.to_thread(_from_the_chain)
        if self._is_lent and self._lent.refresh_needed():
            return await asyncio.to_thread(self._read)
        return self._read()

    def provide(self) -> S3Credential:
        """The key for obstore, which keeps it until it ends and calls from a thread of its own."""
        key = self._key or self._read()
        return {
            "access_key_id": key.access,
            "secret_access_key": key.secret,
            "token": key.token,
            "expires_at": datetime.now(UTC) + _ASKED_AGAIN if self._key is None else None,
        }

    @property
    def _is_lent(self) -> bool:
        return hasattr(self._lent, "refresh_needed")

    def _read(self) -> AccessKey:
        """What the chain gives now; a key that ends soon is renewed, which may take a while."""
        if self._lent is None:
            self._lent = _from_the_chain()
        got = self._lent.get_frozen_credentials()
        key = AccessKey(got.access_key, got.secret_key, got.token)
        if not self._is_lent:
            self._key = key
        return key


def _from_variables(environ: Mapping[str, str]) -> AccessKey | None:
    """What the chain finds first. To look here spares most processes the load of the chain."""
    access, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if not access or not secret:
        return None
    return AccessKey(
        access, secret, environ.get("AWS_SESSION_TOKEN") or environ.get("AWS_SECURITY_TOKEN") or None
    )


def _from_the_chain() -> Any:
    import botocore.session
    from botocore.exceptions import BotoCoreError

    try:
        found = botocore.session.get_session().get_credentials()
    except BotoCoreError as error:
        raise Refused(f"The key for the store cannot be read: {error}") from None
    if found is None:
        raise Refused("There is no key for the store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
    return found
