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

    def ask(self, seconds: float | None = None) -> Call:
        deadline = None if seconds is None else self.world.seconds + seconds
        call = make_call(self.world, deadline=deadline)
        self.worker.open_fetches.add(call)
        return call

    def unaccounted(self) -> list[str]:
        return list(self.registry.mark_unaccounted(self.worker))


@pytest.mark.req("TQ-138", "TQ-139")
def test_silence_and_return() -> None:
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
def test_what_is_assigned_to_a_silent_worker_is_taken_away_whenever_it_comes() -> None:
    """A job that an open request still brings to a silent worker is found by the next sweep."""
    fixture = Fixture()
    worker = fixture.worker
    call = fixture.ask()
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


def test_an_assignment_is_known_by_job_and_worker() -> None:
    """Who runs a job is known until it is released."""
    fixture = Fixture()
    fixture.worker.assigned["a"] = None
    runs = fixture.registry.is_assigned
    assert (runs("a"), runs("a", "w"), runs("a", "other"), runs("b")) == (True, True, False, False)
    fixture.registry.release("a")
    assert not runs("a")


@pytest.mark.parametrize(("asking", "told"), [(0, []), (1, []), (2, ["a"]), (3, ["a", "b"])])
def test_more_jobs_and_requests_than_slots_do_not_add_up(asking: int, told: list[str]) -> None:
    """As many of the oldest jobs are told of as exceed the slots, each once."""
    fixture = Fixture(slots=3)
    fixture.worker.assigned.update({"a": None, "b": None})
    for _ in range(asking):
        fixture.ask()
    assert fixture.unaccounted() == told
    assert fixture.unaccounted() == []


def test_requests_that_nobody_waits_for_do_not_count() -> None:
    """A request whose caller is gone or out of time says nothing about a slot."""
    fixture = Fixture(slots=2)
    fixture.worker.assigned["a"] = None
    fixture.ask().gone = True
    fixture.ask(seconds=0.0)
    fixture.ask()
    assert fixture.unaccounted() == []
    fixture.ask()
    assert fixture.unaccounted() == ["a"]


@pytest.mark.req("CH-38")
def test_a_worker_of_unknown_size_is_not_suspected() -> None:
    """Without a capacity hint nothing is known, and nothing concluded."""
    fixture = Fixture(slots=0)
    fixture.worker.assigned["a"] = None
    fixture.ask()
    assert (fixture.unaccounted(), fixture.registry.remove_abandoned(fixture.worker)) == ([], [])


@pytest.mark.req("CH-32")
def test_a_job_is_given_up_when_no_slot_had_it_for_the_timeout() -> None:
    """It takes the timeout, and all slots asking once more, until a job counts as abandoned."""
    fixture = Fixture(slots=1)
    fixture.worker.assigned["a"] = None
    call = fixture.ask()
    assert fixture.unaccounted() == ["a"]
    assert fixture.registry.remove_abandoned(fixture.worker) == []
    fixture.world.seconds += TIMEOUT
    fixture.beat()
    assert fixture.registry.remove_abandoned(fixture.worker) == []
    fixture.world.seconds += 0.001
    fixture.worker.open_fetches.discard(call)
    assert fixture.registry.remove_abandoned(fixture.worker) == []
    fixture.ask()
    assert fixture.registry.remove_abandoned(fixture.worker) == ["a"]
    assert not fixture.registry.is_assigned("a")


@pytest.mark.req("CH-32")
def test_a_job_nobody_missed_is_not_given_up() -> None:
    """All slots asking at once says nothing against a job that was not missing before."""
    fixture = Fixture(slots=1)
    fixture.ask()
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
