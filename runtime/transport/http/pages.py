"""Routes of every HTTP listener beside the methods: health, readiness, metrics, and documents."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from importlib.resources import files
from typing import Any

import orjson

from runtime.observe.metrics import Metrics
from runtime.transport.http.answers import HttpAnswer, answer

Problem = Callable[[], Awaitable[str | None]]
"""Returns why a node is not ready; None if it is."""
Respond = Callable[[Any, Any, Mapping[str, str]], Awaitable[HttpAnswer | None]]

HEALTH, READY, METRICS, OPENAPI, DOCS = "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"
_FIELD = re.compile(r"\{[^}]*\}")
_INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)
_PATIENCE = 2.0
_HTML = b"text/html; charset=utf-8"


class Readiness:
    """Readiness of a node. It is not ready before its start is complete, nor after its stop has begun."""

    def __init__(self, problem: Problem | None = None) -> None:
        self._problem = problem
        self.not_ready_reason: str | None = "the node is starting"

    async def problem(self) -> str | None:
        """Return why the node is not ready; None if it is."""
        if self.not_ready_reason is not None:
            return self.not_ready_reason
        if self._problem is None:
            return None
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._problem()
        except TimeoutError:
            return f"nothing is known after {_PATIENCE:g} s"


def monitoring_routes(readiness: Readiness, metrics: Metrics) -> Iterator[tuple[str, str, Respond]]:
    """Make the routes for operators: health, readiness and metrics."""

    async def health(_scope: Any, _receive: Any, _path: Mapping[str, str]) -> HttpAnswer:
        return answer(200, b'{"alive":true}')

    async def ready(_scope: Any, _receive: Any, _path: Mapping[str, str]) -> HttpAnswer:
        problem = await readiness.problem()
        if problem is None:
            return answer(200, b'{"ready":true}')
        return answer(503, orjson.dumps({"ready": False, "problem": problem}))

    async def metrics_text(_scope: Any, _receive: Any, _path: Mapping[str, str]) -> HttpAnswer:
        text = await metrics.render()
        from prometheus_client import CONTENT_TYPE_LATEST

        return answer(200, text, CONTENT_TYPE_LATEST.encode())

    yield "GET", HEALTH, health
    yield "GET", READY, ready
    yield "GET", METRICS, metrics_text


def document_routes(system: str, served: Collection[tuple[str, str]]) -> Iterator[tuple[str, str, Respond]]:
    """Make the routes for developers of clients: the OpenAPI document of this node, and a page for it."""
    package = files(f"generated.{system}")
    described = answer(200, _filter_openapi(package.joinpath("openapi.json").read_bytes(), served))
    html = package.joinpath("docs.html").read_bytes()
    page = answer(200, html, _HTML, *_page_headers(html))

    async def openapi(_scope: Any, _receive: Any, _path: Mapping[str, str]) -> HttpAnswer:
        return described

    async def docs(_scope: Any, _receive: Any, _path: Mapping[str, str]) -> HttpAnswer:
        return page

    yield "GET", OPENAPI, openapi
    yield "GET", DOCS, docs


def _filter_openapi(document: bytes, served: Collection[tuple[str, str]]) -> bytes:
    """Remove the routes of other nodes from the OpenAPI document of a system."""
    whole = orjson.loads(document)
    # The document has the JSON names of fields, the routes have those of the spec.
    known = {(method, _FIELD.sub("{}", path)) for method, path in served}
    here: dict[str, dict[str, Any]] = {}
    for path, methods in whole["paths"].items():
        shape = _FIELD.sub("{}", path)
        kept = {name: row for name, row in methods.items() if (name.upper(), shape) in known}
        if kept:
            here[path] = kept
    if here == whole["paths"]:
        return document
    operations = {row["operationId"] for methods in here.values() for row in methods.values()}
    for response in (
        each for methods in here.values() for row in methods.values() for each in row["responses"].values()
    ):
        links = response.get("links", {})
        response["links"] = {name: row for name, row in links.items() if row["operationId"] in operations}
        if not response["links"]:
            del response["links"]
    return orjson.dumps({**whole, "paths": here})


def _page_headers(html: bytes) -> list[tuple[bytes, bytes]]:
    """Make the Content-Security-Policy: the page may run its own script and fetch from its origin."""
    hashes: dict[bytes, bytes] = {}
    for kind, text in _INLINE.findall(html):
        digest = base64.b64encode(hashlib.sha256(text).digest())
        hashes[kind] = hashes.get(kind, b"") + b" 'sha256-" + digest + b"'"
    policy = b"default-src 'none'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    policy += b"".join(b"; %s-src%s" % (kind, each) for kind, each in hashes.items())
    return [(b"content-security-policy", policy), (b"x-content-type-options", b"nosniff")]
