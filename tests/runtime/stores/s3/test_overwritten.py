"""One entity that somebody overwrites, or one request that fails, is no harm to the others of a worker."""

from __future__ import annotations

import pytest

from runtime.call.conditions import Condition
from tests.runtime.stores.s3.conftest import Make
from tests.support.s3.proxy import S3Proxy


async def test_what_is_overwritten_while_it_runs_is_a_lost_lease(process: Make) -> None:
    """The worker that has it goes on with all else: neither its outcome nor its renewal ends anything."""
    one = process()
    await one.submit()
    await one.submit()
    spoilt, other = await one.take(free=2)
    one.raw_put(f"tasks/{spoilt.shard}/{spoilt.id}.json", b"no task <script>")
    assert await one.renew(spoilt) is False
    lost = await one.settle(spoilt, "complete", output="1")
    assert isinstance(lost, Condition) and lost.code == one.system.roles["lease_lost"].code
    assert await one.settle(other, "complete", output="1") == one.states["COMPLETED"]


async def test_what_was_taken_beside_a_failure_is_run(process: Make, s3_proxy: S3Proxy) -> None:
    """Leases are not forgotten because the store failed to answer for another entity."""
    one = process(s3_proxy)
    tasks = [await one.submit() for _ in range(3)]
    s3_proxy.rule(kind="GetObject", key=tasks[0].id, times=None, status=503)
    taken = await one.take(free=3)
    assert {each.id for each in taken} == {each.id for each in tasks[1:]}
    with pytest.raises(Condition):
        await one.take(free=3)
