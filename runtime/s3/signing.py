"""Requests to S3 as bytes, signed as its version 4 wants it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from time import gmtime, strftime
from urllib.parse import quote

from runtime.s3.credentials import Key

_SAFE = "-_.~"
_NOTHING = sha256(b"").hexdigest()


def path_of(key: str) -> str:
    """A key as part of an address."""
    return quote(key, safe="/" + _SAFE)


def query_of(values: Mapping[str, str]) -> str:
    """The query of an address, in the order that the signature wants."""
    return "&".join(f"{quote(name, safe=_SAFE)}={quote(values[name], safe=_SAFE)}" for name in sorted(values))


class Signer:
    """Signs for one host and region. It keeps the signing key of the day."""

    def __init__(self, host: str, region: str) -> None:
        self._host = host
        self._region = region
        self._today: tuple[Key, str] | None = None
        self._signing_key = b""
        self._second: tuple[int, str] = (0, "")

    def request(
        self,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str],
        body: bytes,
        key: Key,
        now: float,
    ) -> bytes:
        """A whole request. The names of the headers are in small letters."""
        if int(now) != self._second[0]:
            self._second = (int(now), strftime("%Y%m%dT%H%M%SZ", gmtime(now)))
        stamp = self._second[1]
        digest = sha256(body).hexdigest() if body else _NOTHING
        told = {**headers, "host": self._host, "x-amz-content-sha256": digest, "x-amz-date": stamp}
        if key.token is not None:
            told["x-amz-security-token"] = key.token
        names = sorted(told)
        lines = "".join([f"{name}:{told[name]}\n" for name in names])
        signed = ";".join(names)
        canonical = f"{method}\n{path}\n{query}\n{lines}\n{signed}\n{digest}"
        scope = f"{stamp[:8]}/{self._region}/s3/aws4_request"
        signature = self._signature(canonical, scope, stamp, key)
        sent = "".join([f"{name}: {told[name]}\r\n" for name in names])
        target = f"{path}?{query}" if query else path
        length = f"content-length: {len(body)}\r\n" if body or method == "PUT" else ""
        return (
            f"{method} {target} HTTP/1.1\r\n{sent}{length}authorization: AWS4-HMAC-SHA256 "
            f"Credential={key.access}/{scope}, SignedHeaders={signed}, Signature={signature}\r\n\r\n"
        ).encode() + body

    def lent_query(self, path: str, query: Mapping[str, str], key: Key, now: float, seconds: int) -> str:
        """The query that makes an address readable for whoever has it, for so many seconds."""
        stamp = strftime("%Y%m%dT%H%M%SZ", gmtime(now))
        scope = f"{stamp[:8]}/{self._region}/s3/aws4_request"
        told = {
            **query,
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{key.access}/{scope}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(seconds),
            "X-Amz-SignedHeaders": "host",
        }
        if key.token is not None:
            told["X-Amz-Security-Token"] = key.token
        canonical = f"GET\n{path}\n{query_of(told)}\nhost:{self._host}\n\nhost\nUNSIGNED-PAYLOAD"
        return f"{query_of(told)}&X-Amz-Signature={self._signature(canonical, scope, stamp, key)}"

    def _signature(self, canonical: str, scope: str, stamp: str, key: Key) -> str:
        to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        return hmac.digest(self._key_of_the_day(key, stamp[:8]), to_sign.encode(), "sha256").hex()

    def _key_of_the_day(self, key: Key, day: str) -> bytes:
        if self._today != (key, day):
            made = f"AWS4{key.secret}".encode()
            for part in (day, self._region, "s3", "aws4_request"):
                made = hmac.digest(made, part.encode(), "sha256")
            self._today, self._signing_key = (key, day), made
        return self._signing_key
