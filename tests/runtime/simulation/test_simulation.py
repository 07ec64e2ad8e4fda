"""The simulated world: virtual time, seeded order, and nothing left behind."""

from __future__ import annotations

import asyncio

import pytest

from runtime.model.text import is_uuid4
from runtime.simulation import (
    Leaked,
    SimulatedWorld,
    Stuck,
    SwallowedFault,
    simulate,
)
from runtime.simulation.world import EPOCH_MS


def test_hours_pass_at_once() -> None:
    """Sleeping, timeouts and all clocks follow virtual time, which costs none of the real."""

    async def scenario(world: SimulatedWorld) -> None:
        await world.sleep(36_000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        assert world.monotonic() == asyncio.get_running_loop().time() == 39_600
        assert world.now_ms() == EPOCH_MS + 39_600_000

    simulate(scenario)


def test_the_wall_clock_steps_and_the_other_does_not() -> None:
    """A step of the wall clock, back or forth, leaves the monotonic clock alone."""

    async def scenario(world: SimulatedWorld) -> None:
        await world.sleep(1)
        world.step_wall_clock(-10_000)
        assert world.now_ms() == EPOCH_MS - 9_000
        assert world.monotonic() == 1

    simulate(scenario)


def drawn(seed: int) -> tuple[list[str], list[float], list[int]]:
    """Ids, random numbers and the order in which equal tasks ran, all from one seed."""

    async def scenario(world: SimulatedWorld) -> tuple[list[str], list[float], list[int]]:
        order: list[int] = []

        async def run(number: int) -> None:
            await asyncio.sleep(0)
            order.append(number)

        await asyncio.gather(*(run(number) for number in range(20)))
        return [world.new_id() for _ in range(3)], [world.uniform(0, 1) for _ in range(3)], order

    return simulate(scenario, seed)


def test_a_seed_gives_the_same_ids_numbers_and_order() -> None:
    """A run is had again from its seed, and another seed gives another run."""
    assert drawn(1) == drawn(1)
    for one, other in zip(drawn(1), drawn(2), strict=True):
        assert one != other
    assert all(is_uuid4(each) for each in drawn(1)[0])


def test_what_one_purpose_draws_does_not_disturb_another() -> None:
    """Each purpose has random numbers of its own, so a fault more does not change every id."""
    one, other = SimulatedWorld(3), SimulatedWorld(3)
    one.chance("network").random()
    assert one.new_id() == other.new_id()


def test_a_task_left_behind_fails_the_run() -> None:
    """A scenario that ends while something of it goes on is at fault."""

    async def scenario(world: SimulatedWorld) -> None:
        world.kept = asyncio.create_task(asyncio.sleep(1))  # type: ignore[attr-defined]

    with pytest.raises(Leaked, match="1 tasks are left"):
        simulate(scenario)


def test_an_unhandled_exception_fails_the_run() -> None:
    """A task that fails without being awaited is at fault."""

    async def scenario(world: SimulatedWorld) -> None:
        async def fail() -> None:
            raise KeyError("unseen")

        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        del task

    with pytest.raises(SwallowedFault, match="never retrieved"):
        simulate(scenario)


def test_a_run_that_waits_for_nothing_is_stuck() -> None:
    """When nothing is ready and no timer is set, the run ends instead of hanging."""

    async def scenario(world: SimulatedWorld) -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        simulate(scenario)
