"""The key for a store, from where every S3 client looks for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from runtime.s3.errors import Refused


class Key(NamedTuple):
    """What requests are signed with; one that is lent for a while has a token."""

    access: str
    secret: str
    token: str | None = None


class Credentials:
    """Where keys come from: variables, else a profile, a role, the machine. Lent ones are renewed in time."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._lent: Any = None
        self._key = _from_variables(environ)

    async def key(self) -> Key:
        """The key to use now."""
        if self._key is not None:
            return self._key
        if self._lent is None:
            self._lent = await asyncio.to_thread(_from_the_chain)
        fixed = not hasattr(self._lent, "refresh_needed")
        if fixed or not self._lent.refresh_needed():
            got = self._lent.get_frozen_credentials()
        else:
            got = await asyncio.to_thread(self._lent.get_frozen_credentials)
        key = Key(got.access_key, got.secret_key, got.token)
        if fixed:
            self._key = key
        return key


def _from_variables(environ: Mapping[str, str]) -> Key | None:
    """What the chain finds first. To look here spares most processes the load of the chain."""
    access, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if not access or not secret:
        return None
    return Key(access, secret, environ.get("AWS_SESSION_TOKEN") or environ.get("AWS_SECURITY_TOKEN") or None)


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
