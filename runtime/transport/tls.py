"""TLS credentials of a node, read from the files that its settings name."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from runtime.model.system import Node, System


def make_http_context(certificate_file: str, key_file: str, authority_file: str) -> ssl.SSLContext:
    """Make the TLS context of an HTTP listener. A client certificate is optional, but must be valid."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate_file, key_file)
    context.load_verify_locations(authority_file)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


class HttpTls(Struct, frozen=True):
    """The TLS context for HTTP calls that a handler makes itself; None where TLS is off."""

    context: ssl.SSLContext | None = None

    @classmethod
    def of(cls, system: System, values: Mapping[str, Any]) -> Self:
        """Make it from the variables with the files of the node's certificate."""
        roles = {system.variables[name].role: value for name, value in values.items()}
        if roles.get("tls_certificate") is None:
            return cls()
        files = (roles[each] for each in ("tls_certificate", "tls_key", "tls_authority"))
        return cls(Credentials.read(*files).for_http())


def server_name(system: str, component: str) -> str:
    """Return the DNS name that a node's certificate has for a component, on whatever host it runs."""
    return f"{component}.{system}"


def certificate_name(node: Node) -> str:
    """Return the name of the certificate of a node.

    A node of several components has one of its own: they call in process, so it never authenticates as one.
    """
    return node.hosts[0] if len(node.hosts) == 1 else node.name


class Credentials(Struct, frozen=True):
    """The certificate and key of a node, and the CA it trusts; a client may have the CA only."""

    authority: bytes
    certificate: bytes | None = None
    key: bytes | None = None

    @classmethod
    def read(cls, certificate_file: str, key_file: str, authority_file: str) -> Credentials:
        """Read the three files."""
        return CredentialsOfFiles(
            Path(authority_file).read_bytes(),
            Path(certificate_file).read_bytes(),
            Path(key_file).read_bytes(),
            files=(certificate_file, key_file, authority_file),
        )

    def for_client(self) -> ssl.SSLContext:
        """Make the context of gRPC clients; they verify the name of a component, as hosts change."""
        context = self.for_http()
        context.set_alpn_protocols(["h2"])
        return context

    def for_http(self) -> ssl.SSLContext:
        """Make the context of HTTP clients; they verify the name of the host."""
        context = ssl.create_default_context(cadata=self.authority.decode())
        self._load_certificate(context)
        return context

    def for_server(self) -> ssl.SSLContext:
        """Make the context of gRPC servers. A client certificate is optional, but must be valid.

        A client without one is accepted, so that the guard can respond to what it may not call.
        """
        if self.key is None or self.certificate is None:
            raise ValueError("a server needs a certificate and its key")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2"])
        self.renew(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def renew(self, context: ssl.SSLContext) -> None:
        """Load these into a context for later handshakes. CAs that were trusted before stay trusted."""
        self._load_certificate(context)
        context.load_verify_locations(cadata=self.authority.decode())

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        if self.certificate is not None and self.key is not None:
            # ssl loads a certificate only from a file.
            with tempfile.NamedTemporaryFile() as both:
                both.write(self.certificate + self.key)
                both.flush()
                context.load_cert_chain(both.name)


class CredentialsOfFiles(Credentials, frozen=True, kw_only=True):
    """Credentials with the files that they were read from: certificate, key and CA."""

    files: tuple[str, str, str]


class CertificateFiles:
    """The files of a server's credentials, reloaded when they change."""

    def __init__(self, files: tuple[str, str, str]) -> None:
        self._files = files
        self._seen = self._stat_files()

    @classmethod
    def of(cls, credentials: Credentials) -> CertificateFiles | None:
        """Return the files of credentials; None where they were not read from files."""
        return cls(credentials.files) if isinstance(credentials, CredentialsOfFiles) else None

    def read_if_changed(self) -> Credentials | None:
        """Read the credentials if the files have changed and are valid; else None.

        Files that are being written may not match yet. They are checked again the next time.
        """
        seen = self._stat_files()
        if seen is None or seen == self._seen:
            return None
        try:
            renewed = Credentials.read(*self._files)
            renewed.for_server()
        except (OSError, ValueError):
            return None
        self._seen = seen
        return renewed

    def _stat_files(self) -> tuple[tuple[int, int, int], ...] | None:
        try:
            found = [Path(each).stat() for each in self._files]
        except OSError:
            return None
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)
