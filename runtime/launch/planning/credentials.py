"""How the nodes of a local deployment prove themselves: certificates of a private authority, or tokens."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from runtime.model.system import Deployment, Node, System
from runtime.node.systems import outside_principals
from runtime.transport.tls import Credentials, identity

_DAYS = 1


class Proof(Protocol):
    """What nodes and clients are given so that they can prove who they are."""

    authority_file: Path | None

    def of_node(self, node: Node) -> dict[str, str]:
        """Values by the engine's role of a variable."""
        ...

    def of_caller(self, principal: str | None) -> tuple[Credentials | None, str | None]:
        """TLS credentials and a token for a client that calls as a principal; None calls as nobody."""
        ...

    def of_outsiders(self) -> dict[str, str]:
        """The tokens of principals outside, by name."""
        ...

    def discard(self) -> None:
        """Removes what was written."""
        ...


def make_proof(system: System, deployment: Deployment, *, tls: bool) -> Proof:
    """Fresh proofs for one run of a deployment.

    One that listens on this machine only speaks in the clear: then nobody needs an authority of this run to
    call it, and callers prove themselves by token, if they have to prove anything at all. Where somebody may
    call as long as there are no tokens, there are none unless they are asked for in place of TLS.
    """
    if tls and not _is_local(deployment):
        return Certificates(system, deployment)
    return (
        Open() if tls and any(each.without_tokens for each in system.principals.values()) else Tokens(system)
    )


def _is_local(deployment: Deployment) -> bool:
    listeners = (
        host
        for node in deployment.nodes.values()
        for host in (node.bind_host, node.http.host if node.http is not None else None)
        if host is not None
    )
    plain = (host for host in listeners if not host.startswith("${"))
    return all(host == "localhost" or ip_address(host).is_loopback for host in plain)


class Open:
    """Nobody proves anything."""

    authority_file: Path | None = None

    def of_node(self, _node: Node) -> dict[str, str]:
        return {}

    def of_caller(self, _principal: str | None) -> tuple[Credentials | None, str | None]:
        return None, None

    def of_outsiders(self) -> dict[str, str]:
        return {}

    def discard(self) -> None:
        pass


class Tokens:
    """A random token for each principal that may prove itself by one. Nodes get the digests of them all."""

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

    def of_node(self, node: Node) -> dict[str, str]:
        digests = ",".join(
            f"{name}={hashlib.sha256(token.encode()).hexdigest()}" for name, token in self._tokens.items()
        )
        own = {"caller_token": self._tokens[identity(node)]} if identity(node) in self._tokens else {}
        return {**own, **({"accepted_tokens": digests} if digests else {})}

    def of_caller(self, principal: str | None) -> tuple[Credentials | None, str | None]:
        return None, self._tokens.get(principal or "")

    def of_outsiders(self) -> dict[str, str]:
        return self._outside

    def discard(self) -> None:
        pass


class Certificates:
    """A certificate for each node, in a folder of this user alone; tokens for those who have nothing else."""

    def __init__(self, system: System, deployment: Deployment) -> None:
        # What makes certificates takes long to load, and most local deployments need none.
        from runtime.certs import AUTHORITY_FILE, make_certificates

        self._system = system
        self._folder = tempfile.TemporaryDirectory(prefix="charter-certs-")
        self._path = Path(self._folder.name)
        self._authority = make_certificates(system, deployment.name, self._path, days=_DAYS)
        self._tokens = Tokens(system, only_without_certificate=True)
        self.authority_file: Path | None = self._path / AUTHORITY_FILE

    def of_node(self, node: Node) -> dict[str, str]:
        return {
            **self._tokens.of_node(node),
            "tls_certificate": str(self._path / f"{identity(node)}.crt"),
            "tls_key": str(self._path / f"{identity(node)}.key"),
            "tls_authority": str(self.authority_file),
        }

    def of_caller(self, principal: str | None) -> tuple[Credentials | None, str | None]:
        authority = self._authority.certificate
        if principal is None or "certificate" not in self._system.principals[principal].proofs:
            return Credentials(authority), self._tokens.of_caller(principal)[1]
        issued = self._authority.issue(principal)
        return Credentials(authority, issued.certificate, issued.key), None

    def of_outsiders(self) -> dict[str, str]:
        return self._tokens.of_outsiders()

    def discard(self) -> None:
        self._folder.cleanup()
