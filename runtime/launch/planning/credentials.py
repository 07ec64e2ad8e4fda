"""Credentials of a local deployment: certificates of a private CA, or tokens."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from runtime.model.system import Deployment, Node, System
from runtime.node.systems import outside_principals
from runtime.transport.tls import Credentials, certificate_name

_DAYS = 1


class RunCredentials(Protocol):
    """The credentials of the nodes and clients of one run."""

    authority_file: Path | None

    def for_node(self, node: Node) -> dict[str, str]:
        """Return values of variables, by their role."""
        ...

    def for_caller(self, principal: str | None) -> tuple[Credentials | None, str | None]:
        """Return TLS credentials and a token for a client of a principal; None is anonymous."""
        ...

    def external_tokens(self) -> dict[str, str]:
        """Return the tokens of external principals, by name."""
        ...

    def discard(self) -> None:
        """Remove the files."""
        ...


def make_credentials(system: System, deployment: Deployment, *, tls: bool) -> RunCredentials:
    """Make new credentials for one run of a deployment.

    One that listens on loopback only has no TLS: then no client needs the CA of this run, and callers
    authenticate by token, if at all. Where a principal is anonymous as long as there are no tokens, there are
    none unless they are chosen in place of TLS.
    """
    if tls and not _is_loopback_only(deployment):
        return Certificates(system, deployment)
    return (
        NoCredentials()
        if tls and any(each.without_tokens for each in system.principals.values())
        else Tokens(system)
    )


def _is_loopback_only(deployment: Deployment) -> bool:
    listeners = (
        host
        for node in deployment.nodes.values()
        for host in (node.bind_host, node.http.host if node.http is not None else None)
        if host is not None
    )
    plain = (host for host in listeners if not host.startswith("${"))
    return all(host == "localhost" or ip_address(host).is_loopback for host in plain)


class NoCredentials:
    """No credentials: every caller is anonymous."""

    authority_file: Path | None = None

    def for_node(self, _node: Node) -> dict[str, str]:
        return {}

    def for_caller(self, _principal: str | None) -> tuple[Credentials | None, str | None]:
        return None, None

    def external_tokens(self) -> dict[str, str]:
        return {}

    def discard(self) -> None:
        pass


class Tokens:
    """A random token for each principal that may have one. Nodes get the digests of all of them."""

    authority_file: Path | None = None

    def __init__(self, system: System, *, only_without_certificate: bool = False) -> None:
        outside = set(outside_principals(system))
        self._tokens = {
            principal.name: secrets.token_urlsafe(32)
            for principal in system.principals.values()
            if "token" in principal.proofs
            and not (only_without_certificate and "certificate" in principal.proofs)
        }
        self._outside = {name: token for name, token in self._tokens.items() if name in outside}

    def for_node(self, node: Node) -> dict[str, str]:
        digests = ",".join(
            f"{name}={hashlib.sha256(token.encode()).hexdigest()}" for name, token in self._tokens.items()
        )
        own = (
            {"caller_token": self._tokens[certificate_name(node)]}
            if certificate_name(node) in self._tokens
            else {}
        )
        return {**own, **({"accepted_tokens": digests} if digests else {})}

    def for_caller(self, principal: str | None) -> tuple[Credentials | None, str | None]:
        return None, self._tokens.get(principal or "")

    def external_tokens(self) -> dict[str, str]:
        return self._outside

    def discard(self) -> None:
        pass


class Certificates:
    """A certificate for each node, in a private folder; tokens for principals without a certificate."""

    def __init__(self, system: System, deployment: Deployment) -> None:
        # The library takes long to import, and most local deployments need no certificates.
        from runtime.certs import AUTHORITY_FILE, make_certificates

        self._system = system
        self._folder = tempfile.TemporaryDirectory(prefix="charter-certs-")
        self._path = Path(self._folder.name)
        self._authority = make_certificates(system, deployment.name, self._path, days=_DAYS)
        self._tokens = Tokens(system, only_without_certificate=True)
        self.authority_file: Path | None = self._path / AUTHORITY_FILE

    def for_node(self, node: Node) -> dict[str, str]:
        return {
            **self._tokens.for_node(node),
            "tls_certificate": str(self._path / f"{certificate_name(node)}.crt"),
            "tls_key": str(self._path / f"{certificate_name(node)}.key"),
            "tls_authority": str(self.authority_file),
        }

    def for_caller(self, principal: str | None) -> tuple[Credentials | None, str | None]:
        authority = self._authority.certificate
        if principal is None or "certificate" not in self._system.principals[principal].proofs:
            return Credentials(authority), self._tokens.for_caller(principal)[1]
        issued = self._authority.issue(principal)
        return Credentials(authority, issued.certificate, issued.key), None

    def external_tokens(self) -> dict[str, str]:
        return self._tokens.external_tokens()

    def discard(self) -> None:
        self._folder.cleanup()
