"""Deduplication of submits: equal specs, the number of remembered keys, and their eviction."""

from __future__ import annotations

import pytest

from generated.taskqueue.errors import RequestKeyReused
from generated.taskqueue.messages import JobSpec
from runtime.call.conditions import Failure
from tests.support.taskqueue.fault_plans import fail_calls
from tests.support.taskqueue.stack import NO_WORKER, SPEC, Stack, play


def change_spec(**fields: object) -> JobSpec:
    spec = JobSpec()
    spec.CopyFrom(SPEC)
    for name, value in fields.items():
        if name == "labels":
            spec.labels.clear()
            spec.labels.update(value)  # type: ignore[call-overload]
        else:
            setattr(spec, name, value)
    return spec


@pytest.mark.req("TQ-106", "TQ-108", "TQ-149")
@pytest.mark.parametrize(
    "other",
    [
        change_spec(job_type="other"),
        change_spec(work_duration_ms=301),
        change_spec(payload_size_bytes=9),
        change_spec(labels={"a": "1"}),
        change_spec(labels={"a": "1", "b": "3"}),
        change_spec(labels={}),
    ],
)
def test_a_key_with_another_spec_is_refused(other: JobSpec) -> None:
    """Each of the four fields counts; nothing is created."""

    async def scenario(stack: Stack) -> None:
        await stack.submit(key="k")
        with pytest.raises(RequestKeyReused) as refused:
            await stack.submit(other, "k")
        assert refused.value.grpc == "FAILED_PRECONDITION"
        assert len(await stack.list()) == 1

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-108")
def test_the_order_of_labels_does_not_matter() -> None:
    """Labels that were set in another order are the same labels."""
    names = [f"label-{number}" for number in range(20)]

    async def scenario(stack: Stack) -> None:
        first = await stack.submit_job(change_spec(labels=dict.fromkeys(names, "x")), "k")
        assert await stack.submit_job(change_spec(labels=dict.fromkeys(reversed(names), "x")), "k") == first

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-107")
def test_without_a_key_every_submit_is_a_new_job() -> None:
    """The same spec twice is two jobs."""

    async def scenario(stack: Stack) -> None:
        assert await stack.submit_job() != await stack.submit_job()

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-25")
@pytest.mark.parametrize("key", [" ", "\t", "not a uuid", "é" * 100])
def test_any_text_is_a_key(key: str) -> None:
    """A key has no format, is not trimmed, and is a key even if it is blank."""

    async def scenario(stack: Stack) -> None:
        first = await stack.submit_job(key=key)
        assert await stack.submit_job(key=key) == first
        assert await stack.submit_job(key=f"{key} ") != first

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-22", "TQ-147")
def test_a_spec_is_checked_before_its_key() -> None:
    """A malformed spec is refused as such even under a key that is known."""

    async def scenario(stack: Stack) -> None:
        await stack.submit(key="k")
        with pytest.raises(Failure) as refused:
            await stack.submit(JobSpec(), "k")
        assert (refused.value.grpc, refused.value.message) == (
            "INVALID_ARGUMENT",
            "spec.job_type: must not be empty",
        )

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-110", "TQ-111", "CH-23", "TQ-175")
def test_the_oldest_key_is_forgotten_first() -> None:
    """With room for two keys the third displaces the first; its repeat is a new job, the old one stays."""

    async def scenario(stack: Stack) -> None:
        first = await stack.submit_job(key="a")
        second = await stack.submit_job(key="b")
        assert await stack.submit_job(key="a") == first
        await stack.submit_job(key="c")
        assert await stack.submit_job(key="b") == second
        again = await stack.submit_job(JobSpec(job_type="other"), "a")
        assert again != first
        assert {first, again} <= {job.job_id for job in await stack.list()}

    play(scenario, without=NO_WORKER, MAX_DEDUP_KEYS="2")


@pytest.mark.req("TQ-109", "TQ-220")
def test_a_restart_forgets_the_keys() -> None:
    """The keys live as long as the job service does."""

    async def scenario(stack: Stack) -> None:
        first = await stack.submit_job(key="k")
        stack.deployment.crash("job")
        stack.deployment.start("job")
        assert await stack.submit_job(key="k") != first

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-72")
def test_a_key_whose_record_was_evicted_is_free() -> None:
    """When the record of a key is evicted by its bound, the key creates a new job."""

    async def scenario(stack: Stack) -> None:
        first = await stack.submit_job(key="a")
        await stack.wait_until_terminal(first)
        await stack.wait_until_terminal(await stack.submit_job(key="b"))
        with pytest.raises(Failure, match="no job"):
            await stack.status(first)
        assert await stack.submit_job(key="a") != first

    play(scenario, MAX_RETAINED_JOBS="1")


@pytest.mark.req("CH-15", "TQ-110")
def test_the_key_of_a_compensated_submit_is_not_counted() -> None:
    """The key of a submit that was undone does not displace another."""

    async def scenario(stack: Stack) -> None:
        first = await stack.submit_job(key="a")
        stack.fail(fail_calls("EnqueueJob"))
        with pytest.raises(Failure):
            await stack.submit(key="b")
        stack.heal()
        await stack.submit_job(key="c")
        assert await stack.submit_job(key="a") == first

    play(scenario, without=NO_WORKER, MAX_DEDUP_KEYS="2")
