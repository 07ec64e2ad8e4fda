"""What components keep in stores: a component over the store of another one goes on where that one ended."""

from __future__ import annotations

from typing import Any

from generated.taskqueue.lifecycle import ENVELOPE, JOB, SUBMIT_KEY
from generated.taskqueue.messages import (
    DONE,
    QUEUED,
    CreateJobRequest,
    CreateJobResponse,
    DeleteJobIfStatusRequest,
    GetResultRequest,
    JobSpec,
    StoreResultRequest,
)
from generated.taskqueue.records import EnvelopeRecord, JobRecord, SubmitKeyRecord
from generated.taskqueue.settings import JobSettings, ResultSettings
from generated.taskqueue.system import SYSTEM
from handlers.taskqueue.job import Job
from handlers.taskqueue.result import Result
from runtime.call import Call
from runtime.model.lifecycles import Lifecycle
from runtime.observe.metrics import Metrics
from runtime.stores.memory import MemoryStore
from tests.runtime.hand_world import HandWorld, make_call


class Fixture:
    """The stores of job and result, and components over them that can be made anew."""

    def __init__(self) -> None:
        self.world = HandWorld()
        self._envelopes: MemoryStore[EnvelopeRecord] = self._make_store(ENVELOPE, EnvelopeRecord)
        self.jobs: MemoryStore[JobRecord] = self._make_store(JOB, JobRecord)
        self.keys: MemoryStore[SubmitKeyRecord] = self._make_store(SUBMIT_KEY, SubmitKeyRecord)
        self.begin()

    def begin(self) -> None:
        """Make the components, as a process does at its start."""
        bounds = ResultSettings(max_output_bytes=1000, max_retained_output_bytes=2500)
        self.result = Result(self._envelopes, bounds, self.world)
        settings = JobSettings(max_dedup_keys=2, max_retained_jobs=0)
        self.job = Job(self.jobs, self.keys, settings, self.world)

    def call(self) -> Call:
        return make_call(self.world, caller="gateway")

    async def store(self, job_id: str) -> None:
        request = StoreResultRequest(job_id=job_id, terminal_status=DONE, output_bytes=b"x" * 1000)
        assert (await self.result.store_result(request, self.call())).stored

    async def holds(self, job_id: str) -> bool:
        return (await self.result.get_result(GetResultRequest(job_id=job_id), self.call())).found

    async def create(self, key: str) -> CreateJobResponse:
        request = CreateJobRequest(spec=JobSpec(job_type="t"), client_request_id=key)
        return await self.job.create_job(request, self.call())

    def _make_store(self, lifecycle: Lifecycle, record: Any) -> Any:
        return MemoryStore(SYSTEM, lifecycle, record, self.world, Metrics())


async def test_the_bytes_of_earlier_envelopes_count() -> None:
    """The oldest are deleted beyond the bound, also those that another process stored."""
    fixture = Fixture()
    for number in range(2):
        await fixture.store(f"job-{number}")
    fixture.begin()
    await fixture.store("job-2")
    fixture.begin()
    await fixture.store("job-3")
    assert [await fixture.holds(f"job-{number}") for number in range(4)] == [False, False, True, True]


async def test_earlier_keys_are_known_and_the_oldest_forgotten() -> None:
    """A key finds its job after a restart, and is forgotten by age when there are too many."""
    fixture = Fixture()
    first, second = await fixture.create("a"), await fixture.create("b")
    fixture.begin()
    assert (await fixture.create("b")).job_id == second.job_id
    await fixture.create("c")
    fixture.begin()
    again = await fixture.create("a")
    assert not again.deduplicated and again.job_id != first.job_id
    assert (await fixture.create("c")).deduplicated and not (await fixture.create("b")).deduplicated


async def test_a_key_without_a_job_is_free() -> None:
    """It is what is left of a creation that broke off, or of a job that is gone."""
    fixture = Fixture()
    first = await fixture.create("a")
    await fixture.jobs.delete(first.job_id, QUEUED, fixture.call())
    fixture.begin()
    again = await fixture.create("a")
    assert not again.deduplicated and (await fixture.create("a")).job_id == again.job_id


async def test_a_key_is_taken_back_with_its_job() -> None:
    """A submit that was not accepted leaves no key behind, in the store either."""
    fixture = Fixture()
    first = await fixture.create("a")
    request = DeleteJobIfStatusRequest(job_id=first.job_id, expected_status=QUEUED)
    assert (await fixture.job.delete_job_if_status(request, fixture.call())).deleted
    assert not (await fixture.job.delete_job_if_status(request, fixture.call())).deleted
    fixture.begin()
    assert not (await fixture.create("a")).deduplicated


async def test_a_key_that_a_killed_process_left_late_is_used() -> None:
    """Its last statement was committed after the next process had read the keys; the submit gets through."""
    fixture = Fixture()
    await fixture.create("a")
    late = SubmitKeyRecord(client_request_id="b", job_id="late", remembered_at_ms=fixture.world.now_ms())
    await fixture.keys.create(late, fixture.call())
    made = await fixture.create("b")
    assert made.job_id == "late" and not made.deduplicated
    assert (await fixture.create("b")).deduplicated
