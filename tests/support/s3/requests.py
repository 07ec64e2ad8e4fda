"""S3 requests as they pass: what they ask for, and how they are signed once more after a change."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

_BUCKET_WORDS = {"versioning": "BucketVersioning", "cors": "BucketCors", "lifecycle": "BucketLifecycle"}
_BUCKET_WORDS |= {"policy": "BucketPolicy", "location": "BucketLocation", "tagging": "BucketTagging"}
_VERBS = {
    "GET": "Get",
    "PUT": "Put",
    "DELETE": "Delete",
    "HEAD": "Head",
    "POST": "Post",
    "OPTIONS": "Options",
}


@dataclass
class Asked:
    """A request; the names of its headers are in small letters."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)
    status: int = 0
    """What the one who asked was told; 0 where that was nothing."""
    forwarded: bool = False

    @property
    def path(self) -> str:
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> Mapping[str, str]:
        told = parse_qs(self.target.partition("?")[2], keep_blank_values=True)
        return {name: values[0] for name, values in told.items()}

    @property
    def bucket(self) -> str:
        return self.path.lstrip("/").partition("/")[0]

    @property
    def key(self) -> str:
        return self.path.lstrip("/").partition("/")[2]

    @property
    def kind(self) -> str:
        """What S3 calls the operation."""
        verb, query = _VERBS.get(self.method, self.method), self.query
        if self.key:
            return f"{verb}Object" + ("Tagging" if "tagging" in query else "")
        if "list-type" in query:
            return "ListObjectsV2"
        if "versions" in query:
            return "ListObjectVersions"
        for word, name in _BUCKET_WORDS.items():
            if word in query:
                return verb + name
        return {"PUT": "CreateBucket", "GET": "ListObjects" if self.bucket else "ListBuckets"}.get(
            self.method, f"{verb}Bucket"
        )


@dataclass
class Rule:
    """What happens to some requests. Those before the `nth` and after `times` more pass unharmed."""

    kind: str | None = None
    key: str | None = None
    """A pattern that the key contains."""
    having: str | None = None
    """A header that the request has."""
    nth: int = 1
    times: int | None = 1
    """How often; None stands for as long as the proxy runs."""
    delay_s: float = 0.0
    refuse: bool = False
    """The connection ends before anything is forwarded."""
    drop: bool = False
    """The request is carried out, and its answer never arrives."""
    status: int | None = None
    code: str = ""
    carried_out: bool = False
    """The request is carried out before it is answered with the status."""
    truncate: int | None = None
    """How many bytes of the answer's body arrive."""
    strip: tuple[str, ...] = ()
    """Headers of the request that the server never sees."""
    strip_answer: tuple[str, ...] = ()
    matched: int = 0

    def takes(self, asked: Asked) -> bool:
        """Whether it is the turn of this request; counts it."""
        if (self.kind is not None and self.kind != asked.kind) or (
            self.key is not None and re.search(self.key, asked.key) is None
        ):
            return False
        if self.having is not None and self.having.lower() not in asked.headers:
            return False
        self.matched += 1
        return self.matched >= self.nth and (self.times is None or self.matched < self.nth + self.times)


def signed_again(asked: Asked, key: str, secret: str, region: str) -> dict[str, str]:
    """The headers of a changed request as its sender would have signed them."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    kept = {name: value for name, value in asked.headers.items() if name not in _OF_THE_SIGNATURE}
    request = AWSRequest(
        method=asked.method,
        url=f"http://{asked.headers['host']}{asked.target}",
        headers=kept,
        data=asked.body,
    )
    request.context["payload_signing_enabled"] = True
    S3SigV4Auth(Credentials(key, secret), "s3", region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


_OF_THE_SIGNATURE = {
    "authorization",
    "x-amz-date",
    "x-amz-content-sha256",
    "expect",
    "connection",
    "user-agent",
}
