"""Discovery of the queue by multicast DNS: announced under its exact name, and withdrawn when it stops."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from zeroconf import ServiceBrowser, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncZeroconf

from generated.queuey.deployments import LOCAL
from generated.queuey.system import SYSTEM
from runtime.node.discovery import Announcer, find, find_one, records, sockets
from runtime.node.node import Node
from runtime.node.settings import SettingsError
from runtime.world import RealWorld
from tests.support.eventually import eventually
from tests.support.plain_http import NO_TLS

SERVICE = "_serval:queue._tcp.local."
ALIAS = "_serval-queue._tcp.local."


async def start_queue(folder: Path, name: str, log: io.StringIO | None = None, **settings: str) -> Node:
    variables = {"DB_PATH": str(folder / f"{name}.db"), "PORT": "0", "GRPC_PORT": "0", **settings}
    node = Node(SYSTEM, "local", "queue", variables, RealWorld(), log or io.StringIO())
    await node.start()
    return node


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = await start_queue(tmp_path, "announced")
    yield node
    await node.stop()


async def find_ours(node: Node) -> list[records.Offer]:
    """The announcements of this very node; others may run on the machine."""
    return [each for each in await find(SERVICE, 1.0) if each.port == node.http_port]


async def wait_for_announcements(*ports: int | None) -> list[records.Offer]:
    """All announcements, once these ports are among them: a packet may be lost, or a machine be busy."""
    for _ in range(30):
        announcements = await find(SERVICE, 1.0)
        if {*ports} <= {each.port for each in announcements}:
            break
    return list(announcements)


@pytest.mark.req("QQ-048", "QQ-049", "QQ-050", "QQ-051", "QQ-052")
async def test_a_plain_query_for_the_exact_name_is_answered(node: Node) -> None:
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.settimeout(5)
    asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
    # A query for a pointer, written by hand: a number, one question, the name in labels, PTR, IN.
    name = b"".join(bytes((len(part),)) + part for part in (b"_serval:queue", b"_tcp", b"local")) + b"\0"
    question = b"\x12\x34\0\0\0\1\0\0\0\0\0\0" + name + b"\0\x0c\0\1"

    def ask() -> list[bytes]:
        asking.sendto(question, ("224.0.0.251", 5353))
        found = []
        try:
            while True:
                found.append(asking.recv(9000))
                asking.settimeout(0.5)
        except TimeoutError:
            return found

    for _ in range(10):
        packets = await asyncio.to_thread(ask)
        assert all(packet[:2] == b"\x12\x34" for packet in packets)
        found = {
            offer.port: offer for packet in packets for offer, _ in records.parse_offers(SERVICE, packet)
        }
        if node.http_port in found:
            break
    asking.close()
    offer = found[node.http_port or 0]
    assert offer.properties["http_port"] == str(node.http_port)
    async with httpx.AsyncClient(timeout=60, verify=NO_TLS) as client:
        url = f"http://{offer.address}:{offer.properties['http_port']}/readyz"
        assert (await client.get(url)).status_code == 200


@pytest.mark.req("QQ-051")
async def test_ordinary_tools_find_the_alias(node: Node) -> None:
    announced = LOCAL.nodes["queue"].announced
    assert announced is not None
    assert (announced.service, announced.alias) == (SERVICE, ALIAS)
    seen: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def changed(zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        del zeroconf, service_type
        if state_change is ServiceStateChange.Added:
            loop.call_soon_threadsafe(seen.put_nowait, name)

    async with AsyncZeroconf(interfaces=["127.0.0.1"]) as zeroconf:
        browser = ServiceBrowser(zeroconf.zeroconf, ALIAS, handlers=[changed])
        try:
            async with asyncio.timeout(60):
                while True:
                    info = await zeroconf.async_get_service_info(ALIAS, await seen.get())
                    if info is not None and info.port == node.http_port:
                        break
        finally:
            await asyncio.to_thread(browser.cancel)


@pytest.mark.req("QQ-053", "QQ-X11")
async def test_the_announcement_is_withdrawnat_the_stop(tmp_path: Path) -> None:
    withdrawn: list[bool] = []
    listeners = []
    loop = asyncio.get_running_loop()
    node = await start_queue(tmp_path, "withdrawn")
    for _, opened in sockets.open_sockets():

        def read(opened: socket.socket = opened) -> None:
            for offer, is_goodbye in records.parse_offers(SERVICE, opened.recv(9000)):
                if offer.port == node.http_port:
                    withdrawn.append(is_goodbye)

        loop.add_reader(opened, read)
        listeners.append(opened)
    try:
        assert node.http_port in {each.port for each in await wait_for_announcements(node.http_port)}
        await node.stop()
        await eventually(lambda: True in withdrawn)
        assert await find_ours(node) == []
    finally:
        for opened in listeners:
            loop.remove_reader(opened)
            opened.close()


@pytest.mark.req("QQ-054")
async def test_announcements_can_be_disabled(tmp_path: Path) -> None:
    node = await start_queue(tmp_path, "silent", MDNS_ENABLED="false")
    assert await find_ours(node) == []
    await node.stop()


@pytest.mark.req("QQ-054")
@pytest.mark.parametrize("trouble", ["no interface", "no socket"])
async def test_a_failed_announcement_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    def broken() -> list[tuple[str, socket.socket]]:
        if trouble == "no socket":
            raise OSError(101, "Network is unreachable")
        return []

    monkeypatch.setattr("runtime.node.discovery.announcer.open_sockets", broken)
    log = io.StringIO()
    node = await start_queue(tmp_path, "troubled", log)
    async with httpx.AsyncClient(timeout=60, verify=NO_TLS) as client:
        assert (await client.get(f"http://127.0.0.1:{node.http_port}/readyz")).status_code == 200
    await node.stop()
    assert log.getvalue().count("not_announced") == 1


@pytest.mark.req("QQ-055")
async def test_two_queues_have_two_names(tmp_path: Path, node: Node) -> None:
    # Another process would have another number; here it alone distinguishes the two.
    other = records.Offer(SERVICE, "host-1", "127.0.0.1", 1, {"http_port": "1"})
    announcer = Announcer([other], lambda _: None)
    await announcer.start()
    try:
        found = {each.instance: each.port for each in await wait_for_announcements(node.http_port, 1)}
    finally:
        await announcer.stop()
    assert found["host-1"] == 1
    assert node.http_port in found.values()
    assert len(set(found)) == len(found)


@pytest.mark.req("QQ-055")
@pytest.mark.parametrize(("setting", "name"), [("blue green", "blue green"), ("", "queuey.local")])
async def test_the_name_of_the_deployment_is_announced(tmp_path: Path, setting: str, name: str) -> None:
    """As it is set, or that of the design."""
    node = await start_queue(tmp_path, "named", DEPLOYMENT_NAME=setting)
    announcements = await wait_for_announcements(node.http_port)
    await node.stop()
    assert {each.deployment for each in announcements if each.port == node.http_port} == {name}


async def test_a_name_that_is_too_long_for_an_announcement_is_refused(tmp_path: Path) -> None:
    """Before any socket is opened."""
    with pytest.raises(SettingsError, match="DEPLOYMENT_NAME: must have at most 200 bytes"):
        await start_queue(tmp_path, "long", DEPLOYMENT_NAME="ü" * 101)
    assert list(tmp_path.iterdir()) == []


async def test_no_announcement_without_a_service() -> None:
    assert await find_one("_nobody._tcp.local.", 0.3) is None


@pytest.mark.parametrize("packet", [b"", b"\0" * 11, b"\xff" * 600, b"\0" * 12 + b"\xc0\x0c\0\x0c\0\1"])
async def test_malformed_packets_are_ignored(packet: bytes) -> None:
    assert list(records.parse_offers(SERVICE, packet)) == []
