"""The registry of workers by itself: silence, assignments, and jobs that no slot can have."""

from __future__ import annotations

import pytest

from handlers.taskqueue.worker_registry import WorkerEntry, WorkerRegistry
from runtime.call import Call
from tests.runtime.hand_world import HandWorld, make_call

TIMEOUT = 4.0


class Fixture:
    """A registry with one worker of some slots."""

    def __init__(self, slots: int = 2) -> None:
        self.world = HandWorld()
        self.registry = WorkerRegistry(self.world, int(TIMEOUT * 1000))
        self.slots = slots
        self.beat()

    def beat(self) -> bool:
        return self.registry.record_heartbeat("w", self.slots)

    @property
    def worker(self) -> WorkerEntry:
        found = self.registry.find_available("w")
        assert found is not None
        return found

    def open_fetch(self, seconds: float | None = None) -> Call:
        deadline = None if seconds is None else self.world.seconds + seconds
        call = make_call(self.world, deadline=deadline)
        self.worker.open_fetches.add(call)
        return call

    def list_unaccounted(self) -> list[str]:
        return list(self.registry.mark_unaccounted(self.worker))


@pytest.mark.req("TQ-138", "TQ-139")
def test_a_silent_worker_is_new_again_after_its_return() -> None:
    """A worker is new once, available until its timeout, and new again after it."""
    fixture = Fixture()
    assert not fixture.beat()
    fixture.world.seconds += TIMEOUT + 1
    assert fixture.registry.find_available("w") is None
    (silent,) = fixture.registry.expire_silent()
    assert (silent.worker_id, silent.was_available, silent.jobs) == ("w", True, ())
    assert list(fixture.registry.expire_silent()) == []
    assert fixture.beat()


@pytest.mark.req("CH-32", "CH-40")
def test_jobs_assigned_to_a_silent_worker_are_found_by_the_next_sweep() -> None:
    """A job that an open request assigns to a worker which is silent already is ended by the next sweep."""
    fixture = Fixture()
    worker = fixture.worker
    call = fixture.open_fetch()
    worker.assigned["a"] = None
    fixture.world.seconds += TIMEOUT + 1
    (silent,) = fixture.registry.expire_silent()
    assert (silent.was_available, silent.jobs) == (True, ("a",))
    worker.assigned["b"] = None
    (silent,) = fixture.registry.expire_silent()
    assert (silent.was_available, silent.jobs) == (False, ("b",))
    worker.open_fetches.discard(call)
    assert [each.jobs for each in fixture.registry.expire_silent()] == [()]
    assert list(fixture.registry.expire_silent()) == []


def test_an_assignment_is_found_by_job_and_worker() -> None:
    """A job's worker is known until the job is released."""
    fixture = Fixture()
    fixture.worker.assigned["a"] = None
    runs = fixture.registry.is_assigned
    assert (runs("a"), runs("a", "w"), runs("a", "other"), runs("b")) == (True, True, False, False)
    fixture.registry.release("a")
    assert not runs("a")


@pytest.mark.parametrize(("open_fetches", "unaccounted"), [(0, []), (1, []), (2, ["a"]), (3, ["a", "b"])])
def test_jobs_in_excess_of_the_slots_are_unaccounted(open_fetches: int, unaccounted: list[str]) -> None:
    """As many of the oldest jobs are unaccounted as exceed the slots, each reported once."""
    fixture = Fixture(slots=3)
    fixture.worker.assigned.update({"a": None, "b": None})
    for _ in range(open_fetches):
        fixture.open_fetch()
    assert fixture.list_unaccounted() == unaccounted
    assert fixture.list_unaccounted() == []


def test_canceled_and_expired_requests_do_not_count() -> None:
    """A request whose caller is gone or whose deadline is over says nothing about a slot."""
    fixture = Fixture(slots=2)
    fixture.worker.assigned["a"] = None
    fixture.open_fetch().gone = True
    fixture.open_fetch(seconds=0.0)
    fixture.open_fetch()
    assert fixture.list_unaccounted() == []
    fixture.open_fetch()
    assert fixture.list_unaccounted() == ["a"]


@pytest.mark.req("CH-38")
def test_a_worker_of_unknown_capacity_is_not_suspected() -> None:
    """Without a capacity hint nothing is known, and nothing concluded."""
    fixture = Fixture(slots=0)
    fixture.worker.assigned["a"] = None
    fixture.open_fetch()
    assert (fixture.list_unaccounted(), fixture.registry.remove_abandoned(fixture.worker)) == ([], [])


@pytest.mark.req("CH-32")
def test_a_job_without_a_slot_is_abandoned_after_the_timeout() -> None:
    """A job counts as abandoned after the timeout, and once all slots have asked again."""
    fixture = Fixture(slots=1)
    fixture.worker.assigned["a"] = None
    call = fixture.open_fetch()
    assert fixture.list_unaccounted() == ["a"]
    assert fixture.registry.remove_abandoned(fixture.worker) == []
    fixture.world.seconds += TIMEOUT
    fixture.beat()
    assert fixture.registry.remove_abandoned(fixture.worker) == []
    fixture.world.seconds += 0.001
    fixture.worker.open_fetches.discard(call)
    assert fixture.registry.remove_abandoned(fixture.worker) == []
    fixture.open_fetch()
    assert fixture.registry.remove_abandoned(fixture.worker) == ["a"]
    assert not fixture.registry.is_assigned("a")


@pytest.mark.req("CH-32")
def test_a_job_that_was_accounted_for_is_not_abandoned() -> None:
    """All slots asking at once says nothing against a job that was not missing before."""
    fixture = Fixture(slots=1)
    fixture.open_fetch()
    fixture.world.seconds += TIMEOUT - 1
    fixture.worker.assigned["a"] = None
    assert fixture.registry.remove_abandoned(fixture.worker) == []


@pytest.mark.req("CH-32")
def test_a_job_that_heartbeats_do_not_name_is_abandoned_after_the_timeout() -> None:
    """Heartbeats that name the jobs are the evidence, however few slots fetch; a job named again is kept."""
    fixture = Fixture(slots=6)
    fixture.worker.assigned.update({"lost": None, "late": None})
    fixture.registry.record_heartbeat("w", 6, [])
    fixture.world.seconds += TIMEOUT
    fixture.registry.record_heartbeat("w", 6, ["late"])
    assert fixture.registry.remove_abandoned(fixture.worker) == []
    fixture.world.seconds += 0.001
    fixture.registry.record_heartbeat("w", 6, [])
    assert fixture.registry.remove_abandoned(fixture.worker) == ["lost"]
    assert fixture.registry.is_assigned("late")
