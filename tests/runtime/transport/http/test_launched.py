"""A deployment with HTTP listeners, brought up for real: its ports, its health and its ready line."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

import httpx
import pytest

from runtime.launch import launched
from runtime.launch.health import CallRate
from runtime.model.system import System
from tests.runtime.launch.up import PATIENCE
from tests.runtime.transport.http.counter import ROOT
from tests.support.plain_http import NO_TLS


@pytest.fixture(autouse=True)
def findable(counter: System, counter_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes are processes of their own, which have to find the system as this one does."""
    (counter_root / "handlers/__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(counter_root), str(ROOT))))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")


async def test_a_deployment_with_an_anonymous_principal_has_no_tls() -> None:
    """Whatever was asked for: its URL works with any client, and the others have tokens."""
    async with launched("counter.kiosk", ports="auto", tls=True) as running:
        url = running.endpoints["kiosk"]
        assert url.startswith("http://127.0.0.1:")
        assert running.env["CHARTER_URL"] == url
        assert running.endpoints["kiosk.grpc"] == running.env["CHARTER_ADDRESS"]
        async with httpx.AsyncClient(base_url=url, timeout=60, verify=NO_TLS) as client:
            assert (await client.post("/forms/p1/fill", json={"answers": {}})).status_code == 202
            headers = {"authorization": f"Bearer {running.env['CLERK_TOKEN']}"}
            stamped = await client.put("/forms/7/stamp", json={"ink": "red"}, headers=headers)
            assert stamped.status_code == 200
        async with running.client("clerk") as caller:
            assert caller.service("DeskService") is not None
        rate = CallRate(running.processes["kiosk"])
        assert await rate.sample() is None
        async with asyncio.timeout(PATIENCE):
            # A page that a busy machine does not send within a second has to be asked for twice again.
            while await rate.sample() is None:
                pass


async def test_with_certificates_methods_are_behind_tls_and_health_is_not() -> None:
    """The desk has methods, the vault health alone; both are healthy."""
    async with launched("counter.branch", ports="auto", tls=True) as running:
        assert running.endpoints["desk"].startswith("https://")
        assert running.endpoints["vault"].startswith("http://")
        trusted = ssl.create_default_context(cafile=running.env["CHARTER_CA_FILE"])
        async with httpx.AsyncClient(timeout=60, verify=trusted) as client:
            assert (await client.get(f"{running.endpoints['desk']}/forms")).status_code == 200
            assert (await client.get(f"{running.endpoints['vault']}/readyz")).json() == {"ready": True}
