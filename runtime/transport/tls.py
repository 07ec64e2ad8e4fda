"""TLS credentials of a node, read from the files that its settings name."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from runtime.model.system import Node, System


def http_context(certificate_file: str, key_file: str, authority_file: str) -> ssl.SSLContext:
    """The serving side over HTTP. A client may show a certificate; one that it shows must be good."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate_file, key_file)
    context.load_verify_locations(authority_file)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


class HttpTls(Struct, frozen=True):
    """What a node shows and trusts where it calls another over HTTP itself; nothing where there is no TLS."""

    context: ssl.SSLContext | None = None

    @classmethod
    def of(cls, system: System, values: Mapping[str, Any]) -> Self:
        """From the variables that name the node's own certificate."""
        roles = {system.variables[name].role: value for name, value in values.items()}
        if roles.get("tls_certificate") is None:
            return cls()
        files = (roles[each] for each in ("tls_certificate", "tls_key", "tls_authority"))
        return cls(Credentials.read(*files).for_http())


def server_name(system: str, component: str) -> str:
    """The name that a node's certificate has for each component it hosts, wherever it runs."""
    return f"{component}.{system}"


def identity(node: Node) -> str:
    """Whose certificate a node holds.

    A node of several components has one of its own: they talk in process, so it never proves itself as one.
    """
    return node.hosts[0] if len(node.hosts) == 1 else node.name


class Credentials(Struct, frozen=True):
    """A node's certificate and key and the authority it trusts; a client may have the authority only."""

    authority: bytes
    certificate: bytes | None = None
    key: bytes | None = None

    @classmethod
    def read(cls, certificate_file: str, key_file: str, authority_file: str) -> Credentials:
        """Reads the three files."""
        return CredentialsOfFiles(
            Path(authority_file).read_bytes(),
            Path(certificate_file).read_bytes(),
            Path(key_file).read_bytes(),
            files=(certificate_file, key_file, authority_file),
        )

    def for_client(self) -> ssl.SSLContext:
        """What the calling side shows and trusts; it insists on the name of a component, as hosts move."""
        context = self.for_http()
        context.set_alpn_protocols(["h2"])
        return context

    def for_http(self) -> ssl.SSLContext:
        """The same for calls over HTTP, where hosts have names of their own."""
        context = ssl.create_default_context(cadata=self.authority.decode())
        self._show(context)
        return context

    def for_server(self) -> ssl.SSLContext:
        """What the serving side shows. A client may show a certificate, which must be good.

        One that shows none is let in, so that the guard can answer what it may not call.
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
        """Show and trust these in the handshakes to come. What was trusted before still is."""
        self._show(context)
        context.load_verify_locations(cadata=self.authority.decode())

    def _show(self, context: ssl.SSLContext) -> None:
        if self.certificate is not None and self.key is not None:
            # A certificate is only taken from a file.
            with tempfile.NamedTemporaryFile() as both:
                both.write(self.certificate + self.key)
                both.flush()
                context.load_cert_chain(both.name)


class CredentialsOfFiles(Credentials, frozen=True, kw_only=True):
    """Credentials that were read from files: of the certificate, the key and the authority."""

    files: tuple[str, str, str]


class CertificateFiles:
    """The files of a server's credentials, which are read again when they have changed."""

    def __init__(self, files: tuple[str, str, str]) -> None:
        self._files = files
        self._seen = self._look()

    @classmethod
    def of(cls, credentials: Credentials) -> CertificateFiles | None:
        """The files of some credentials; None where they came from elsewhere."""
        return cls(credentials.files) if isinstance(credentials, CredentialsOfFiles) else None

    def read_if_changed(self) -> Credentials | None:
        """The credentials, if the files have changed since and can be used; None while that is not so.

        Files that are being written may not belong together yet. They are looked at again the next time.
        """
        seen = self._look()
        if seen is None or seen == self._seen:
            return None
        try:
            renewed = Credentials.read(*self._files)
            renewed.for_server()
        except (OSError, ValueError):
            return None
        self._seen = seen
        return renewed

    def _look(self) -> tuple[tuple[int, int, int], ...] | None:
        try:
            found = [Path(each).stat() for each in self._files]
        except OSError:
            return None
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)
