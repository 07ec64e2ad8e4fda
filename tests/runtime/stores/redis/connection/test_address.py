"""Where a server is, in every form in which that can be said."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.call.blocking import run_without_loop
from runtime.certs import Authority
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.redis.connection.address import parsed
from runtime.stores.redis.connection.blocking import BlockingRedisClient
from runtime.stores.redis.connection.client import RedisClient, RedisUnavailable
from tests.runtime.stores.redis.conftest import MakeKit
from tests.support.priority.sentinels import Group


def test_urls_are_taken_apart() -> None:
    plain = parsed("redis://user:p%40ss@example.org:7000/3")
    assert (plain.host, plain.port, plain.user, plain.password, plain.database) == (
        "example.org",
        7000,
        "user",
        "p@ss",
        3,
    )
    assert plain.tls is None
    assert parsed("rediss://example.org").tls is not None
    assert parsed("unix:///run/redis.sock?db=2").path == "/run/redis.sock"
    watched = parsed("redis+sentinel://:secret@one:1,two/main/4?sentinel_password=other")
    assert (watched.password, watched.sentinel_password) == ("secret", "other")
    assert (watched.sentinels, watched.service, watched.database) == ((("one", 1), ("two", 26379)), "main", 4)
    assert (watched.user, watched.password) == (None, "secret")


@pytest.mark.parametrize("url", ["http://x", "redis+sentinel://h:1", "redis+sentinel:///main", "nonsense"])
def test_others_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(url)


async def test_a_socket_in_the_file_system(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    made = EmbeddedRedis(tmp_path / "redis", settings={"unixsocket": str(path)})
    made.start()
    servers = [kind(f"unix://:{made.password}@{path}") for kind in (RedisClient, BlockingRedisClient)]
    try:
        for server in servers:
            assert await server.ask(("PING",)) == ["PONG"]
    finally:
        for server in servers:
            await server.close()
        made.remove()


async def test_a_server_behind_tls(own_server: EmbeddedRedis, tmp_path: Path) -> None:
    """Its certificate is checked against the authority that the URL names, and refused without one."""
    authority = Authority("test")
    issued = authority.issue("redis", ["localhost"])
    trusted, own = tmp_path / "authority.pem", tmp_path / "server.pem"
    trusted.write_bytes(authority.certificate)
    own.write_bytes(issued.certificate + issued.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own)

    ended = asyncio.Event()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, there = await asyncio.open_connection("127.0.0.1", own_server.port)
        await asyncio.gather(_pump(reader, there), _pump(back, writer))
        ended.set()

    proxy = await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context)
    url = f"rediss://:{own_server.password}@localhost:{proxy.sockets[0].getsockname()[1]}/0"
    trusting, doubting = RedisClient(f"{url}?ssl_ca_certs={trusted}"), RedisClient(url)
    try:
        assert await trusting.ask(("PING",)) == ["PONG"]
        with pytest.raises(RedisUnavailable):
            await doubting.ask(("PING",))
        await asyncio.to_thread(_ask_without_a_loop, url, f"{url}?ssl_ca_certs={trusted}")
        await ended.wait()
        ended.clear()
    finally:
        await trusting.close()
        await doubting.close()
        await ended.wait()
        proxy.close()


def _ask_without_a_loop(doubting: str, trusting: str) -> None:
    server = BlockingRedisClient(trusting)
    assert run_without_loop(server.ask(("PING",))) == ["PONG"]
    run_without_loop(server.close())
    with pytest.raises(RedisUnavailable):
        run_without_loop(BlockingRedisClient(doubting).ask(("PING",)))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@pytest.mark.req("PQ-252")
async def test_a_switch_of_the_master_is_followed(tmp_path: Path, make_kit: MakeKit) -> None:
    """Three Sentinels: the master is killed, and submitting and polling go on at the replica."""
    with Group(tmp_path) as group:
        await _follows(group, make_kit)


async def _follows(group: Group, make_kit: MakeKit) -> None:
    own_server, replica = group.servers
    blocking = BlockingRedisClient(group.url)
    assert await blocking.ask(("CONFIG", "GET", "port")) == [["port", str(own_server.port)]]
    kit = await make_kit(own_server.url)
    kit.server._address = parsed(group.url)
    kit.server._lines.clear()
    before = await kit.add()
    async with kit.redis.client() as client:
        # What comes after it is at the replica, and so is it.
        await client.set("a-probe", "1")
        assert await client.execute_command("WAIT", 1, 60_000) == 1
    own_server.kill()
    made = None
    async with asyncio.timeout(120):
        while made is None:
            try:
                (made,) = await kit.create(kit.intent(idempotency_key="k"))
            except Exception:
                await asyncio.sleep(0.2)
    assert kit.server._lines["main"]._transport.get_extra_info("peername")[1] == replica.port  # type: ignore[attr-defined]
    assert await blocking.ask(("CONFIG", "GET", "port")) == [["port", str(replica.port)]]
    await blocking.close()
    worker = await kit.worker()
    taken = {task.task_id for task in await kit.claim(worker)}
    assert made.record.task_id in taken and before.task_id in taken
