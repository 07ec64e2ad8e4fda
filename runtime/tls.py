"""TLS credentials of a node, read from the files that its settings name."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc


def http_context(certificate_file: str, key_file: str, authority_file: str) -> ssl.SSLContext:
    """The serving side over HTTP. A client may show a certificate; one that it shows must be good."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate_file, key_file)
    context.load_verify_locations(authority_file)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def server_name(system: str, component: str) -> str:
    """The name that a node's certificate has for each component it hosts, wherever it runs."""
    return f"{component}.{system}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A node's certificate and key and the authority it trusts; a client may have the authority only."""

    authority: bytes
    certificate: bytes | None = None
    key: bytes | None = None

    @classmethod
    def read(cls, certificate_file: str, key_file: str, authority_file: str) -> Credentials:
        """Reads the three files."""
        return cls(
            Path(authority_file).read_bytes(),
            Path(certificate_file).read_bytes(),
            Path(key_file).read_bytes(),
        )

    def for_client(self) -> grpc.ChannelCredentials:
        """What the calling side shows and trusts."""
        return grpc.ssl_channel_credentials(self.authority, self.key, self.certificate)

    def for_server(self, *, require_client: bool) -> grpc.ServerCredentials:
        """What the serving side shows and, where every caller has to prove itself, demands."""
        if self.key is None or self.certificate is None:
            raise ValueError("a server needs a certificate and its key")
        authority = self.authority if require_client else None
        return grpc.ssl_server_credentials([(self.key, self.certificate)], authority, require_client)

    @staticmethod
    def name_options(name: str) -> list[tuple[str, Any]]:
        """Makes the calling side insist on a component, not on a host: hosts move."""
        return [("grpc.ssl_target_name_override", name)]
