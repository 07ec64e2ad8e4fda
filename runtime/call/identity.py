"""Authentication of callers: by the URI in a peer's certificate, or by a bearer token; no other header."""

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


class AuthenticationError(Exception):
    """Why a caller could not be authenticated."""


TWO_TOKENS = AuthenticationError("the call has more than one authorization header")
"""Stands for the authorization of a call that has several headers of it: none of them is accepted."""


class Authenticator:
    """Authenticate callers at one listener of a node."""

    def __init__(
        self,
        system: System,
        accepted_tokens: Mapping[str, bytes] | None,
        anonymous: str | None = None,
        *,
        has_certificates: bool = False,
    ) -> None:
        """`anonymous` is the principal of calls without proof here; by default it is that of the system."""
        self._prefix = f"spiffe://{system.name}/"
        self._principals = system.principals
        self._tokens = [
            (name, digest)
            for name, digest in (accepted_tokens or {}).items()
            if name in system.principals and "token" in system.principals[name].proofs
        ]
        self._matrix = system.matrix
        self._listener_anonymous = anonymous
        self._anonymous = anonymous or next(
            (
                each.name
                for each in system.principals.values()
                if each.anonymous and not (each.without_tokens and (self._tokens or has_certificates))
            ),
            None,
        )

    def identify(
        self, certificate_uris: Iterable[bytes], authorization: str | AuthenticationError | None
    ) -> str:
        """Return the proven caller. Without any proof it is the anonymous principal, if there is one."""
        if isinstance(authorization, AuthenticationError):
            raise authorization
        if uris := tuple(certificate_uris):
            return self._by_certificate(uris)
        if authorization is not None:
            return self._by_token(authorization)
        if self._anonymous is None:
            raise AuthenticationError("no certificate and no token")
        return self._anonymous

    def authenticate(
        self,
        path: str,
        certificate_uris: Sequence[bytes],
        authorization: str | AuthenticationError | None,
        names: Sequence[str] = (),
    ) -> str | AuthenticationError:
        """Return the caller of a method, or why it could not be authenticated.

        A caller without proof, at a listener with an anonymous principal, is asked for proof by each method
        that this principal may not call. `names` are Host and Origin of a browser's request: a page of
        another site is no caller on this machine, even if its name was made to resolve to it (DNS rebinding).
        """
        try:
            caller = self.identify(certificate_uris, authorization)
        except AuthenticationError as error:
            return error
        if self._listener_anonymous is None or authorization is not None or certificate_uris:
            return caller
        for name in names:
            if not is_loopback(parse_host(name)):
                return AuthenticationError(f"nobody is let in without proof as or from {name[:100]!r}")
        if caller not in self._matrix.get(path, {}):
            return AuthenticationError("no certificate and no token")
        return caller

    def _by_certificate(self, uris: tuple[bytes, ...]) -> str:
        if len(uris) > 1:
            raise AuthenticationError("the certificate has more than one URI name")
        text = uris[0].decode(errors="replace")
        name = text.removeprefix(self._prefix)
        principal = self._principals.get(name) if text.startswith(self._prefix) else None
        if principal is None or "certificate" not in principal.proofs:
            raise AuthenticationError(f"the certificate names {text}, which is no principal here")
        return name

    def _by_token(self, authorization: str) -> str:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != _SCHEME:
            raise AuthenticationError("the authorization is no bearer token")
        given = hashlib.sha256(token.encode()).digest()
        found = None
        for name, digest in self._tokens:
            # Every digest is compared, so that the time does not leak which one matches (timing attack).
            if hmac.compare_digest(given, digest):
                found = name
        if found is None:
            raise AuthenticationError("the token is not known")
        return found


def parse_host(header: str) -> str:
    """Parse the host of a Host or an Origin header, without its scheme and its port."""
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
    """Return the metadata with the bearer token of a node, for calls without TLS."""
    return ((TOKEN_HEADER, f"{_BEARER}{token}"),)
