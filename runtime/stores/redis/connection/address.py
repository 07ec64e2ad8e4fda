"""Where a Redis server is: `redis://`, `rediss://`, `unix://`, or whoever its Sentinels say is the master.

`redis+sentinel://[user:password@]host:port,host:port/service[/database]` asks Sentinels at every connection,
so that a master that was switched is followed; `rediss+sentinel://` speaks TLS with the master. Sentinels
that have a password of their own get it from `?sentinel_password=…`.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.asyncio.connection import parse_url
from redis.asyncio.sentinel import Sentinel
from redis.sentinel import Sentinel as BlockingSentinel

_SENTINEL_PORT = 26379
_SENTINEL_S = 1.0


@dataclass(frozen=True, slots=True)
class RedisAddress:
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
    sentinel_password: str | None = None
    """What the Sentinels themselves ask for; the password is that of the servers."""
    options: dict[str, Any] = field(default_factory=dict)

    async def master(self) -> tuple[str, int]:
        """Where the server is at this moment."""
        if not self.sentinels:
            return self.host, self.port
        asked = self.asked(_SENTINEL_S)
        try:
            host, port = await asked.discover_master(self.service)
        finally:
            for each in asked.sentinels:
                await each.aclose()
        return str(host), int(port)

    def master_at_once(self) -> tuple[str, int]:
        """The same without an event loop."""
        if not self.sentinels:
            return self.host, self.port
        asked = BlockingSentinel(list(self.sentinels), sentinel_kwargs=self._sentinel_options(_SENTINEL_S))  # type: ignore[no-untyped-call]
        try:
            host, port = asked.discover_master(self.service)  # type: ignore[no-untyped-call]
        finally:
            for each in asked.sentinels:
                each.close()
        return str(host), int(port)

    def asked(self, patience_s: float) -> Sentinel:
        """The Sentinels, each of which is given so long to answer."""
        own = self._sentinel_options(patience_s)
        # Not for the master: whoever waits for a stream there waits for longer.
        return Sentinel(  # type: ignore[no-untyped-call]
            list(self.sentinels), sentinel_kwargs=own, socket_connect_timeout=patience_s
        )

    def _sentinel_options(self, patience_s: float) -> dict[str, Any]:
        own = {"password": self.sentinel_password} if self.sentinel_password else {}
        return {**own, "socket_timeout": patience_s, "socket_connect_timeout": patience_s}


def parsed(url: str) -> RedisAddress:
    """The address that a URL says; a ValueError says what is wrong with it."""
    scheme, _, rest = url.partition("://")
    if scheme in ("redis+sentinel", "rediss+sentinel"):
        return _sentinels(scheme, rest)
    found: dict[str, Any] = dict(parse_url(url))
    found.pop("connection_class", None)
    return RedisAddress(
        host=found.pop("host", "localhost"),
        port=int(found.pop("port", 6379)),
        path=found.pop("path", None),
        user=found.pop("username", None),
        password=found.pop("password", None),
        database=int(found.pop("db", 0)),
        tls=_context(found) if scheme == "rediss" else None,
    )


def _sentinels(scheme: str, rest: str) -> RedisAddress:
    location, _, path = rest.partition("/")
    proof, _, hosts = location.rpartition("@")
    path, _, query = path.partition("?")
    service, _, database = path.strip("/").partition("/")
    options = dict(parse_qsl(query))
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
    return RedisAddress(
        user=unquote(user) or None,
        password=unquote(password) or None,
        database=int(database or 0),
        tls=_context({}) if scheme == "rediss+sentinel" else None,
        sentinels=tuple(asked),
        service=unquote(service),
        sentinel_password=options.get("sentinel_password"),
    )


def _context(options: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
    if certificate := options.get("ssl_certfile"):
        context.load_cert_chain(certificate, options.get("ssl_keyfile"))
    if str(options.get("ssl_cert_reqs", "required")) == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
