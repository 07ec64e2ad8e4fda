"""Health, readiness, metrics and the documents: what every listener offers beside its methods."""

from __future__ import annotations

import base64
import hashlib
import importlib
import re
from pathlib import Path

import httpx
import pytest

from runtime.call.identity import Authenticator
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.transport.http.server import HttpServer
from runtime.world import RealWorld
from tests.runtime.transport.http.counter import Served
from tests.support.plain_http import NO_TLS


def test_health_and_readiness(http: httpx.Client) -> None:
    """Both are for every caller, and never cached."""
    for path, body in (("/healthz", {"alive": True}), ("/readyz", {"ready": True})):
        response = http.get(path)
        assert (response.status_code, response.json()) == (200, body)
        assert response.headers["cache-control"] == "no-store"
        assert http.post(path).status_code == 405


def test_readiness_names_the_problem(kiosk: Served, counter: System) -> None:
    """A node is not ready before its start is over, nor while a server is down. It is healthy even so."""
    problem: str | None = "the database cannot be reached"

    async def find_problem() -> str | None:
        return problem

    world = RealWorld()
    log = Log("test", "ERROR", world)
    server = HttpServer(
        counter, (), Authenticator(counter, None), world, log, Metrics(), problem=find_problem
    )
    port = kiosk.run(server.start("127.0.0.1", 0))

    def ready() -> tuple[int, object]:
        response = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=60, verify=NO_TLS)
        return response.status_code, response.json()

    try:
        assert ready() == (503, {"ready": False, "problem": "the node is starting"})
        server.ready()
        assert ready() == (503, {"ready": False, "problem": "the database cannot be reached"})
        problem = None
        assert ready() == (200, {"ready": True})
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60, verify=NO_TLS).status_code == 200
    finally:
        kiosk.run(server.stop(1))


def test_metrics_are_those_of_the_node(http: httpx.Client) -> None:
    """In the text format of Prometheus, calls over HTTP among them."""
    http.get("/forms")
    response = http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert 'charter_calls_total{caller="courier",code="OK",method="DeskService.AskForm"}' in response.text
    assert 'charter_entities{entity="parcel"' in response.text


def test_a_node_without_routes_has_the_pages_for_its_watchers_alone(counter: System) -> None:
    """The vault offers no method over HTTP, and so no documents."""
    with (
        Served(counter, "branch", "vault") as vault,
        httpx.Client(base_url=vault.url, timeout=60, verify=NO_TLS) as client,
    ):
        assert [client.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")] == [200] * 3
        for path in ("/openapi.json", "/docs", "/forms"):
            response = client.get(path)
            assert (response.status_code, response.json()["error"]["code"]) == (404, "NO_WINDOW")


def test_the_description_is_the_generated_one(http: httpx.Client, counter: System) -> None:
    """Word for word."""
    package = importlib.import_module(f"generated.{counter.name}")
    assert package.__file__ is not None
    file = Path(package.__file__).parent / "openapi.json"
    response = http.get("/openapi.json")
    assert response.content == file.read_bytes()
    assert response.headers["content-type"] == "application/json"


def test_the_page_needs_no_other_site(http: httpx.Client) -> None:
    """One file with its own style and script, which alone may run; nothing comes from another host."""
    response = http.get("/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "Parcel counter" in response.text or "Parcel locker" in response.text
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", response.text)
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; connect-src 'self'")
    for kind in ("script", "style"):
        (inside,) = re.findall(rf"<{kind}>(.*?)</{kind}>", response.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_a_used_port_is_reported(kiosk: Served, counter: System) -> None:
    """As by the other listener, so that a node ends with one sentence."""
    world = RealWorld()
    log = Log("test", "ERROR", world)
    server = HttpServer(counter, (), Authenticator(counter, None), world, log, Metrics())
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{kiosk.port}"):
        kiosk.run(server.start("127.0.0.1", kiosk.port))


def test_stopping_lets_a_call_finish(counter: System) -> None:
    """A call in flight is answered; a new connection is refused."""
    import threading

    found: list[int] = []
    with Served(counter, "kiosk", "kiosk") as served:
        url = served.url
        thread = threading.Thread(
            target=lambda: found.append(
                httpx.post(f"{url}/forms/wait", timeout=60, verify=NO_TLS).status_code
            )
        )
        thread.start()
        while not any("WaitForm" in line.get("method", "") for line in served.log):
            if found:
                break
    thread.join()
    assert found == [504]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", timeout=60, verify=NO_TLS)
