"""Keys that no spec names: each begins with the system, so that many systems may share a server."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from redis.asyncio import Redis

from runtime.call import Call
from runtime.observe.metrics import Metrics
from runtime.stores.redis import RedisClient, RedisStore
from tests.runtime.hand_world import HandWorld, Lines, make_call
from tests.support.stores.engines import SYSTEM
from tests.support.stores.lifecycles import ALL, COURIER, ERRAND
from tests.support.stores.records import VARIABLES, CourierRecord, ErrandRecord

WORLD = HandWorld()


def store_of(system: str, server: RedisClient, lifecycle: Any) -> RedisStore[Any]:
    named = replace(SYSTEM, name=system, lifecycles={each.entity: each for each in ALL})
    return RedisStore(named, lifecycle, lifecycle.record, server, WORLD, Metrics(), VARIABLES)


def call_of(caller: str) -> Call:
    return make_call(WORLD, caller=caller, lines=Lines())


async def test_systems_on_one_server_do_not_meet(redis_url: str) -> None:
    """The same key, the same unique value and the same owner are different ones in each system."""
    server, client = RedisClient(redis_url), Redis.from_url(redis_url, decode_responses=True)
    for system in ("bakery", "harbour"):
        errands, couriers = (store_of(system, server, each) for each in (ERRAND, COURIER))
        made = await errands.create(ErrandRecord(key="one", ticket="same"), call_of("client"))
        assert made.is_new and made.record.key == "one"
        assert (await couriers.create(CourierRecord(name="anna"), call_of("client"))).is_new
        assert [each.key for each in await errands.claim("anna", 5, call_of("runner"))] == ["one"]
        assert len(await errands.history("one")) == 2
    names = [str(name) for name in await client.keys("*")]
    assert {name.partition(":")[0] for name in names} == {"bakery", "harbour"}
    await client.aclose()
    await server.close()
