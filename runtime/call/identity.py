"""Who is calling, by proof: the URI in a peer's certificate, or a token. A bare header names nobody."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address

from runtime.model.system import System

TOKEN_HEADER = "authorization"
URI_SCHEME = b"spiffe://"
_BEARER = "Bearer "
_SCHEME = "bearer"


class Unproven(Exception):
    """Why a caller could not be told."""


TWO_TOKENS = Unproven("the call has more than one authorization header")
"""What stands for the header of a call that has several: none of them proves anything."""


class Identity:
    """Tells callers apart for one listener of a node."""

    def __init__(
        self,
        system: System,
        accepted_tokens: Mapping[str, bytes] | None,
        anonymous: str | None = None,
        *,
        has_certificates: bool = False,
    ) -> None:
        """`anonymous` calls without proof at this listener, beside whom the system lets in everywhere."""
        self._prefix = f"spiffe://{system.name}/"
        self._principals = system.principals
        self._tokens = [
            (name, digest)
            for name, digest in (accepted_tokens or {}).items()
            if name in system.principals and "token" in system.principals[name].proofs
        ]
        self._matrix = system.matrix
        self._here_only = anonymous
        self._anonymous = anonymous or next(
            (
                each.name
                for each in system.principals.values()
                if each.anonymous and not (each.without_tokens and (self._tokens or has_certificates))
            ),
            None,
        )

    def caller(self, certificate_uris: Iterable[bytes], authorization: str | Unproven | None) -> str:
        """The proven caller. No proof at all is the anonymous principal, if the system has one."""
        if isinstance(authorization, Unproven):
            raise authorization
        if uris := tuple(certificate_uris):
            return self._by_certificate(uris)
        if authorization is not None:
            return self._by_token(authorization)
        if self._anonymous is None:
            raise Unproven("no certificate and no token")
        return self._anonymous

    def proven(
        self,
        path: str,
        certificate_uris: Sequence[bytes],
        authorization: str | Unproven | None,
        names: Sequence[str] = (),
    ) -> str | Unproven:
        """The caller of a method, or why nobody can tell.

        Who shows nothing, where the listener lets somebody in, is told to prove himself wherever that
        somebody may not call. `names` are those under which a browser called, and from whose page: a page of
        another site is not somebody on this machine, even if its name was made to point here.
        """
        try:
            caller = self.caller(certificate_uris, authorization)
        except Unproven as unproven:
            return unproven
        if self._here_only is None or authorization is not None or certificate_uris:
            return caller
        for name in names:
            if not is_loopback(host_of(name)):
                return Unproven(f"nobody is let in without proof as or from {name[:100]!r}")
        if caller not in self._matrix.get(path, {}):
            return Unproven("no certificate and no token")
        return caller

    def _by_certificate(self, uris: tuple[bytes, ...]) -> str:
        if len(uris) > 1:
            raise Unproven("the certificate has more than one URI name")
        text = uris[0].decode(errors="replace")
        name = text.removeprefix(self._prefix)
        principal = self._principals.get(name) if text.startswith(self._prefix) else None
        if principal is None or "certificate" not in principal.proofs:
            raise Unproven(f"the certificate names {text}, which is no principal here")
        return name

    def _by_token(self, authorization: str) -> str:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != _SCHEME:
            raise Unproven("the authorization is no bearer token")
        given = hashlib.sha256(token.encode()).digest()
        found = None
        for name, digest in self._tokens:
            # Every digest is compared, so that the time taken tells nothing about which one fits.
            if hmac.compare_digest(given, digest):
                found = name
        if found is None:
            raise Unproven("the token is not known")
        return found


def host_of(header: str) -> str:
    """The name in a Host or an Origin header, without its scheme and its port."""
    header = header.rpartition("://")[2]
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def token_metadata(token: str) -> tuple[tuple[str, str], ...]:
    """The metadata with which a node proves itself where TLS is off."""
    return ((TOKEN_HEADER, f"{_BEARER}{token}"),)
