"""Every request of every flow fails once with each fault: no task is lost, run twice or inconsistent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from generated.objectqueue.records import RetryPolicy
from runtime.call.conditions import Failure
from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.s3.client.objects import BucketLocation, ListedObject
from tests.runtime.stores.s3.kit import Process
from tests.support.chaos import Chaos
from tests.support.eventually import eventually
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy

PATIENCE_S = 0.6
"""How long they wait for an answer that is delayed. For others it is longer: a busy machine harms nothing."""
SLOW = RetryPolicy(initial_interval_ms=600_000, max_interval_ms=600_000, multiplier=1.0, jitter_percent=0.0)
TRIES = 6
FEW = 2
"""Ways of harming a flow in the quick form."""
HARMS: dict[str, dict[str, Any]] = {
    "delayed until nobody waits": {"delay_s": 2 * PATIENCE_S},
    "never answered": {"drop": True},
    "never sent": {"refuse": True},
    "500 or 503": {"status": (500, 503)},
    "500 and yet done": {"status": (500, 503), "carried_out": True},
    "409": {"status": (409, 409)},
    "cut off": {"truncate": 3},
}


class Below(Bucket):
    """The part of a bucket below a prefix, for clients that wait for an answer as long as they say."""

    def __init__(self, bucket: Bucket, prefix: str, patience_s: float = 10.0) -> None:
        super().__init__(bucket.name, bucket.endpoint, bucket.raw)
        object.__setattr__(self, "_location", replace(bucket.location, prefix=prefix, timeout_s=patience_s))

    @property
    def location(self) -> BucketLocation:
        location: BucketLocation = self.__dict__["_location"]
        return location


class Runs:
    """A client and a worker behind the proxy, and the claims that the worker knows of."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.claims: list[tuple[str, int, str]] = []

    async def retry(self, step: Callable[[], Awaitable[Any]]) -> Any:
        """Run a step, repeated as its caller repeats it where the store does not answer."""
        for _ in range(TRIES):
            try:
                found = await step()
            except Failure as failure:
                found = failure
            if not isinstance(found, Failure) or found.grpc != "UNAVAILABLE":
                return found
        raise AssertionError("the store did not answer for long")

    async def submit(self, record: Any) -> None:
        await self.retry(lambda: self.process.tasks.create(record, self.process.call()))

    async def work(self, record: Any, edge: str, **values: Any) -> Any:
        """Claim a task and settle it by an edge; return the outcome, or None if it was not claimed."""
        tasks, call = self.process.tasks, self.process.call("worker")

        async def claim() -> list[Any]:
            where, kinds = {"shard": record.shard}, [record.task_type]
            return await tasks.claim("worker", 1, call, where=where, capabilities=kinds)

        for _ in range(TRIES):
            claimed = await self.retry(claim)
            if claimed:
                (mine,) = claimed
                self.claims.append((mine.id, mine.attempt, mine.lease_id))
                return await self.settle(mine, edge, values)
        return None

    async def settle(self, mine: Any, edge: str, values: dict[str, str]) -> Any:
        """Settle as a worker does, which retries until it knows the outcome."""
        asked = LeaseSettlement(mine.id, LeaseProof("worker", mine.attempt), edge, values)

        async def settle_once() -> Any:
            (outcome,) = await self.process.tasks.settle_many([asked], self.process.call("worker"))
            return outcome

        return await self.retry(settle_once)

    async def transition(self, record: Any, source: str, target: str) -> Any:
        """Transition as a client does: read first, and expect the state that was read."""

        async def step() -> Any:
            return await self.process.move(record.id, source, target)

        return await self.retry(step)


async def _do_nothing(_direct: Process, _record: Any) -> None:
    """The task stays as it was submitted."""


async def _fail(direct: Process, record: Any) -> None:
    await direct.move(record.id, "PENDING", "FAILED")
    await direct.tasks.drain_indexes()


FLOWS: dict[str, tuple[Any, Any, str]] = {
    "submit": (None, lambda runs, record: runs.submit(record), "Pending"),
    "complete": (_do_nothing, lambda runs, record: runs.work(record, "complete", output="1"), "Completed"),
    "retry": (_do_nothing, lambda runs, record: runs.work(record, "retry", error="broken"), "Pending"),
    "cancel": (_do_nothing, lambda runs, record: runs.transition(record, "PENDING", "FAILED"), "Failed"),
    "replay": (_fail, lambda runs, record: runs.transition(record, "FAILED", "PENDING"), "Pending"),
    "archive": (_fail, lambda runs, record: runs.transition(record, "FAILED", "ARCHIVED"), "Archived"),
}
"""The preparation, the flow through the proxy, and the expected state."""


@pytest.mark.chaos
@pytest.mark.req("OQ-252", "OQ-253", "OQ-064", "OQ-110", "OQ-111", "OQ-127", "OQ-143", "OQ-145")
@pytest.mark.req("OQ-238", "OQ-239", "OQ-089")
@pytest.mark.parametrize("flow", FLOWS)
async def test_a_flow_survives_every_fault(
    bucket: Bucket, s3_server: EmbeddedSeaweedfs, flow: str, chaos: Chaos
) -> None:
    """For every n the nth request of the flow fails; one sweep later everything is as it should be.

    In the quick form the longest flow is harmed in every way, and each of the others in some.
    """
    count = len(HARMS) if flow == "complete" else chaos.size(FEW, len(HARMS))
    harms = chaos.chance.sample([*HARMS.values()], count)
    found = await asyncio.gather(
        *(_play_with_faults(bucket, s3_server, flow, f"{number}/", harm) for number, harm in enumerate(harms))
    )
    chaos.count(ways=count, requests_harmed=sum(found))


async def _play_with_faults(
    bucket: Bucket, server: EmbeddedSeaweedfs, flow: str, prefix: str, harm: dict[str, Any]
) -> int:
    """Play one kind of fault below a prefix of its own, so that several run concurrently; count them."""
    begin, act, expected = FLOWS[flow]
    proxy = S3Proxy(server.url, server.access_key, server.secret_key)
    proxy.start()
    direct = Process(Below(bucket, prefix))
    patience_s = PATIENCE_S if "delay_s" in harm else 30.0
    runs = Runs(Process(Below(bucket.through(proxy), prefix, patience_s)))
    ids: list[str] = []
    harmed = nth = 0
    try:
        while nth == harmed:
            nth += 1
            record = direct.new(id=direct.world.new_id(), task_type=f"n{nth}", retry_policy=SLOW)
            if begin is not None:
                record = await direct.submit(id=record.id, task_type=record.task_type, retry_policy=SLOW)
                await begin(direct, record)
            proxy.forget()
            words = {**harm, "status": harm["status"][nth % 2]} if "status" in harm else harm
            rule = proxy.rule(nth=nth, **words)
            await act(runs, record)
            await runs.process.tasks.drain_indexes()
            harmed += rule.matched >= nth
            ids.append(record.id)
        assert harmed >= 2
        await eventually(lambda: not proxy.passing)
        late = await _recover(direct, ids, runs)
        await _sweep(direct)
        entries = [each.key for index in ("ready/", "leases/") for each in await _list_all(direct, index)]
        for task_id in ids:
            status = "Pending" if task_id in late else expected
            claims = [each for each in runs.claims if each[0] == task_id]
            _check_course(await _read_versions(direct, task_id), status, late.get(task_id, claims))
            found = [key.partition("/")[0] for key in entries if key.endswith(task_id)]
            assert found == (["ready"] if status == "Pending" else [])
        return harmed
    finally:
        await runs.process.close()
        await direct.close()
        await asyncio.to_thread(proxy.stop)


async def _recover(direct: Process, ids: list[str], runs: Runs) -> dict[str, list[tuple[str, int, str]]]:
    """Tasks whose claim was carried out after its worker had given up, once the monitor requeued them."""
    known = {key for key, _, _ in runs.claims}
    found: dict[str, list[tuple[str, int, str]]] = {}
    for task_id in ids:
        record = await direct.tasks.get(task_id)
        assert record is not None
        if record.status == direct.states["RUNNING"] and task_id not in known:
            found[task_id] = [(task_id, record.attempt, record.lease_id)]
    if found:
        await _sweep(direct)
        direct.world.ahead_ms += 400_000
        while await direct.tasks.run_due("retry", direct.call("monitor")):
            """Until there is none."""
        await direct.tasks.drain_indexes()
    return found


async def _sweep(direct: Process) -> None:
    while await direct.tasks.repair(direct.call("monitor")):
        """One look at all tasks."""


def _check_course(versions: list[dict[str, Any]], expected: str, claims: list[tuple[str, int, str]]) -> None:
    assert versions[-1]["status"] == expected
    assert [each["rev"] for each in versions] == list(range(1, len(versions) + 1))
    running = [(each["attempt"], each["lease_id"]) for each in versions if each["status"] == "Running"]
    assert running == [(attempt, lease) for _, attempt, lease in claims]
    assert len(running) <= 1, "a lease that had not expired was claimed again"


async def _read_versions(direct: Process, task_id: str) -> list[dict[str, Any]]:
    key = f"tasks/{task_id[0]}/{task_id}.json"
    bodies = [await direct.objects.get(key, each.version) async for each in direct.objects.versions(key)]
    return [json.loads(body.body) for body in reversed(bodies) if body is not None]


async def _list_all(direct: Process, prefix: str) -> Sequence[ListedObject]:
    page = await direct.objects.page(prefix, most=1000)
    assert page.token is None
    return page.entries
