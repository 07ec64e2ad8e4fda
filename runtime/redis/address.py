"""Where a Redis server is: `redis://`, `rediss://`, `unix://`, or whoever its Sentinels say is the master.

`redis+sentinel://[user:password@]host:port,host:port/service[/database]` asks Sentinels at every connection,
so that a master that was switched is followed; `rediss+sentinel://` speaks TLS with the master.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from redis.asyncio.connection import parse_url
from redis.asyncio.sentinel import Sentinel

_SENTINEL_PORT = 26379
_SENTINEL_S = 1.0


@dataclass(frozen=True, slots=True)
class Address:
    """One server, or the Sentinels that know it."""

    host: str = "localhost"
    port: int = 6379
    path: str | None = None
    """A socket in the file system."""
    user: str | None = None
    password: str | None = None
    database: int = 0
    tls: ssl.SSLContext | None = None
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    async def master(self) -> tuple[str, int]:
        """Where the server is at this moment."""
        if not self.sentinels:
            return self.host, self.port
        asked = Sentinel(list(self.sentinels), socket_timeout=_SENTINEL_S, socket_connect_timeout=_SENTINEL_S)
        try:
            host, port = await asked.discover_master(self.service)
        finally:
            for each in asked.sentinels:
                await each.aclose()
        return str(host), int(port)


def parsed(url: str) -> Address:
    """The address that a URL says; a ValueError says what is wrong with it."""
    scheme, _, rest = url.partition("://")
    if scheme in ("redis+sentinel", "rediss+sentinel"):
        return _sentinels(scheme, rest)
    found: dict[str, Any] = dict(parse_url(url))
    found.pop("connection_class", None)
    return Address(
        host=found.pop("host", "localhost"),
        port=int(found.pop("port", 6379)),
        path=found.pop("path", None),
        user=found.pop("username", None),
        password=found.pop("password", None),
        database=int(found.pop("db", 0)),
        tls=_context(found) if scheme == "rediss" else None,
    )


def _sentinels(scheme: str, rest: str) -> Address:
    location, _, path = rest.partition("/")
    proof, _, hosts = location.rpartition("@")
    service, _, database = path.partition("?")[0].strip("/").partition("/")
    if not service or not hosts:
        raise ValueError(
            "redis+sentinel:// needs hosts and the name of a service: redis+sentinel://h:26379/main"
        )
    user, _, password = proof.partition(":")
    asked = []
    for each in hosts.split(","):
        split = urlsplit(f"//{each}")
        if split.hostname is None:
            raise ValueError(f"{each!r} is no host")
        asked.append((split.hostname, split.port or _SENTINEL_PORT))
    return Address(
        user=unquote(user) or None,
        password=unquote(password) or None,
        database=int(database or 0),
        tls=_context({}) if scheme == "rediss+sentinel" else None,
        sentinels=tuple(asked),
        service=unquote(service),
    )


def _context(options: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
    if certificate := options.get("ssl_certfile"):
        context.load_cert_chain(certificate, options.get("ssl_keyfile"))
    if str(options.get("ssl_cert_reqs", "required")) == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
