"""A worker that is killed between its claim and the index entry of its lease: its task is run again."""

from __future__ import annotations

import pytest

from tests.support.eventually import eventually
from tests.support.objectqueue.crew import Crew, Skewed
from tests.support.s3.proxy import S3Proxy

NEVER_S = "86400"


@pytest.mark.req("OQ-112", "OQ-252", "OQ-255")
async def test_a_worker_killed_right_after_its_claim_hides_no_task(
    proxied_crew: Crew, s3_proxy: S3Proxy, later: Skewed
) -> None:
    """The entry of its lease is missing, and no sweep is due: the lease expires and it is claimed again."""
    crew = proxied_crew
    key = await crew.submit("gate", "/no/such/gate", timeout_seconds=600)
    s3_proxy.rule(kind="PutObject", key="leases/", delay_s=float(NEVER_S), times=None)
    killed = crew.process("killed", QO_INDEX_MODE="index-only")
    await crew.wait_for_state(key, "Running")
    killed.kill()
    assert crew.hints("leases") == []
    s3_proxy.forget()
    settings = {"QO_INDEX_MODE": "index-only", "QO_MONITOR_SWEEP_INTERVAL": NEVER_S}
    async with (
        crew.worker("other", later, **settings, QO_SHUTDOWN_GRACE="0"),
        crew.monitor(later, **settings) as monitor,
    ):
        task = await eventually(lambda: crew.task(key), wanted=lambda each: int(each["attempt"]) > 1)
        assert (task["worker_id"], task["retry_count"]) == ("other", 1)
        assert task["last_error"] == "lease expired (worker killed, attempt 1)"
        assert monitor.events("lease_expired")
        assert not s3_proxy.asked("ListObjectsV2", "sweeps/")
