"""Random traffic, faults and crashes, each run from its seed. A run that fails is had again by its number."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest
from google.protobuf.message import Message

from generated.taskqueue.messages import JobSpec
from runtime.simulation import Exchange, Fault
from tests.support.taskqueue.invariants import Ledger, check_assignments, settle, verify
from tests.support.taskqueue.stack import Stack, play

RUNS = 24
CRASHES = 12
FAULTS = (Fault.BEFORE, Fault.AFTER, Fault.TIMEOUT, Fault.LATE, Fault.TWICE)
JOB_TYPES = ("sleep", "sleep", "sleep", "fail", "of another kind")


class RandomFaults:
    """Makes a fraction of all calls fail."""

    def __init__(self, chance: random.Random, fraction: float) -> None:
        self._chance = chance
        self._fraction = fraction

    def __call__(self, exchange: Exchange) -> Fault | Message | None:
        if self._chance.random() > self._fraction:
            return None
        fault = self._chance.choice(FAULTS)
        return None if fault is Fault.TWICE and not repeatable(exchange) else fault


def repeatable(exchange: Exchange) -> bool:
    """Whether the spec lets a call be repeated. No network of ours delivers any other call twice."""
    policy = exchange.method.policy
    keyed = policy.retry_when_set is None or bool(getattr(exchange.request, policy.retry_when_set))
    return policy.idempotency != "never" and keyed


async def client(stack: Stack, ledger: Ledger, chance: random.Random) -> None:
    """Submits, reads and cancels at random."""
    for _ in range(6):
        await stack.world.sleep(chance.uniform(0.0, 0.8))
        spec = JobSpec(
            job_type=chance.choice(JOB_TYPES),
            work_duration_ms=chance.choice((0, 50, 400, 1500)),
            payload_size_bytes=chance.choice((0, 10, 300_000)),
        )
        await ledger.submit(stack, chance.choice(("", "", "a", "b", "c")), spec)
        if ledger.accepted:
            job_id = chance.choice(sorted(ledger.accepted))
            await chance.choice((ledger.cancel, ledger.look, ledger.look))(stack, job_id)


async def crash_and_restart(stack: Stack, chance: random.Random, names: Sequence[str]) -> None:
    for _ in range(2):
        await stack.world.sleep(chance.uniform(0.3, 2.5))
        name = chance.choice(names)
        stack.deployment.crash(name)
        await stack.world.sleep(chance.choice((0.01, 0.5, 5.5)))
        stack.deployment.start(name)


async def storm(stack: Stack, ledger: Ledger, seed: int, crashing: Sequence[str]) -> None:
    chance = random.Random(seed)
    stack.fail(RandomFaults(chance, fraction=chance.choice((0.0, 0.05, 0.2, 0.4))))
    clients = [client(stack, ledger, random.Random(f"{seed}/{number}")) for number in range(4)]
    await asyncio.gather(*clients, crash_and_restart(stack, chance, crashing))
    await settle(stack, 60.0)


@pytest.mark.req(
    "TQ-064", "TQ-074", "TQ-081", "TQ-083", "TQ-166", "TQ-221", "CH-16", "CH-29", "CH-32", "CH-33"
)
@pytest.mark.parametrize("seed", range(RUNS))
def test_no_job_is_lost_in_a_storm(seed: int) -> None:
    """With calls failing at random and workers dying, every job ends once."""

    async def scenario(stack: Stack) -> None:
        ledger = Ledger()
        await storm(stack, ledger, seed, crashing=["worker"])
        await verify(stack, ledger, may_vanish=True)
        assert len(ledger.accepted) > 2

    play(scenario, seed=seed, WORKER_SLOTS="2")


@pytest.mark.req("TQ-081", "TQ-221", "CH-63", "CH-94")
@pytest.mark.parametrize("seed", range(CRASHES))
def test_no_job_is_lost_unless_its_record_is(seed: int) -> None:
    """Whichever nodes crash among those that store neither records nor results, every job ends once."""

    async def scenario(stack: Stack) -> None:
        ledger = Ledger()
        await storm(stack, ledger, seed, crashing=["queue", "coordinator", "worker", "gateway"])
        await verify(stack, ledger, may_vanish=True)

    play(scenario, seed=seed, WORKER_SLOTS="2")


@pytest.mark.req("TQ-061", "TQ-064", "TQ-083", "CH-63")
@pytest.mark.parametrize("seed", range(CRASHES))
def test_no_crash_causes_an_illegal_transition(seed: int) -> None:
    """Whichever node loses its memory, the log has legal transitions only, and no job is assigned twice."""

    async def scenario(stack: Stack) -> None:
        await storm(stack, Ledger(), seed, crashing=list(stack.deployment.nodes))
        check_assignments(stack)
        (job_id,) = {await stack.submit_job(key="the last one") for _ in range(2)}
        await stack.wait_until_terminal(job_id)

    play(scenario, seed=seed, WORKER_SLOTS="2")


@pytest.mark.req("TQ-221")
def test_a_run_is_determined_by_its_seed() -> None:
    """Two runs from one seed have the same log, line for line, and another seed has another."""

    def lines(seed: int) -> list[str]:
        async def scenario(stack: Stack) -> None:
            await storm(stack, Ledger(), seed, crashing=["worker"])

        return play(scenario, seed=seed, WORKER_SLOTS="2").deployment.lines

    assert lines(1) == lines(1) != lines(2)
