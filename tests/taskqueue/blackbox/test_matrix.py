"""The whole caller matrix against running nodes: everybody, every method, within every condition and not."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from generated.taskqueue.messages import (
    CreateJobRequest,
    GetJobRecordRequest,
    GetJobRecordResponse,
    JobSpec,
    TransitionJobStatusRequest,
)
from runtime.launch import Launched, launched
from runtime.transport.grpc.carrier import VARIABLE
from tests.support.eventually import eventually
from tests.support.taskqueue.callers import Caller, Shown, caller, everybody, principal
from tests.support.taskqueue.logs import lines, told
from tests.support.taskqueue.matrix_oracle import (
    ANONYMOUS,
    EDGES,
    METHODS,
    PRINCIPALS,
    STATES,
    Called,
    requests,
    verdict,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWERED = ("OK", "NOT_FOUND")
"""How a call ends that reached its handler; the probes are about a job that nobody has."""
TERMINAL = ("DONE", "FAILED", "CANCELED")
NUMBERS = (*STATES.values(), 9)
"""Every state, none, and one that there is not."""
CREATE, READ, MOVE = (
    next(each for each in METHODS if each.method == name)
    for name in ("CreateJob", "GetJobRecord", "TransitionJobStatus")
)
INGRESS = "gateway"
WAYS = {
    "QUEUED": [],
    "RUNNING": ["RUNNING"],
    "DONE": ["RUNNING", "DONE"],
    "FAILED": ["RUNNING", "FAILED"],
    "CANCELED": ["RUNNING", "CANCELED"],
}
"""How the coordinator brings a new job into each state."""


class Guarded(NamedTuple):
    """A deployment, and whether its listeners ask for a certificate from everybody or from nobody."""

    nodes: Launched
    all_or_none: bool

    def caller(self, name: str) -> Caller:
        """A principal that proves itself."""
        return caller(self.nodes, principal(self.nodes, name))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["tls", "tls by direct", "tokens"])
async def guarded(request: pytest.FixtureRequest) -> AsyncIterator[Guarded]:
    """A deployment whose nodes prove themselves in one of the two ways."""
    starting = launched("taskqueue.microservices", ports="auto", tls=request.param != "tokens")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "direct" if request.param == "tls by direct" else "grpcio")
        running = await starting.__aenter__()
    try:
        yield Guarded(running, request.param == "tls")
    finally:
        await starting.__aexit__(None, None, None)


@pytest.mark.req("TQ-019", "TQ-020", "TQ-021", "TQ-022", "TQ-023", "TQ-060", "CH-65", "CH-01")
async def test_everybody_may_do_what_the_spec_says_and_nothing_else(guarded: Guarded) -> None:
    """Each call ends as an oracle reads it from the YAML: answered, not proven, or not permitted."""
    wrong: list[str] = []
    tried = 0
    for sort, shown in everybody(guarded.nodes).items():
        async with caller(guarded.nodes, shown) as calling:
            for called in METHODS:
                for request in requests(shown.name or "gateway", called):
                    expected = expectation(guarded, shown, called, request)
                    # What the node calls itself may not answer in time on a busy machine.
                    for _ in range(10):
                        code = await calling.code(called, request)
                        if code != "UNAVAILABLE" or code in expected:
                            break
                    tried += 1
                    if code not in expected:
                        wrong.append(
                            f"{sort} -> {called.path} {request}: {code}, not {' or '.join(expected)}"
                        )
    assert wrong == []
    assert tried > len(METHODS) * len(PRINCIPALS)


@pytest.mark.req("TQ-061", "TQ-062", "TQ-063", "TQ-060", "CH-64")
async def test_every_step_of_a_job_is_for_those_whom_the_lifecycle_names(guarded: Guarded) -> None:
    """Each pair of states by each actor applies, or is refused with its code and leaves the record alone."""
    gateway, coordinator = (
        caller(guarded.nodes, principal(guarded.nodes, name)) for name in ("gateway", "coordinator")
    )
    invalid = 0
    async with gateway, coordinator:
        still = {state: await made(gateway, coordinator, state) for state in WAYS}
        before = {state: await record(coordinator, job_id) for state, job_id in still.items()}
        for name in (*PRINCIPALS, ANONYMOUS):
            shown = Shown(name) if name == ANONYMOUS else principal(guarded.nodes, name)
            async with caller(guarded.nodes, shown) as calling:
                for source, target in itertools.product(NUMBERS, NUMBERS):
                    request = step(still.get(state_of(source), still["QUEUED"]), source, target, name)
                    expected = expectation(guarded, shown, MOVE, request)
                    if expected == ANSWERED:
                        # It will apply, so it gets a job of its own.
                        request.job_id = await made(gateway, coordinator, state_of(source))
                        moved = await calling.call(MOVE, request)
                        assert (moved.applied, moved.current_status) == (True, target)
                        continue
                    assert (await calling.code(MOVE, request),) == expected, (name, request)
                    invalid += expected == ("INVALID_ARGUMENT",)
        assert {state: await record(coordinator, job_id) for state, job_id in still.items()} == before

    async def lines_of_it() -> int:
        log = lines(guarded.nodes.processes["job"])
        return sum(line["event"] == "invalid_transition" and line["job_id"] in still.values() for line in log)

    await eventually(
        lines_of_it, wanted=lambda count: count == invalid, what="a line for each invalid transition"
    )


@pytest.mark.req("TQ-063", "TQ-064", "TQ-155", "TQ-167", "CH-64", "CH-66")
async def test_a_step_from_where_a_job_no_longer_is_changes_nothing(guarded: Guarded) -> None:
    """A legal step with a stale expectation is answered with the true state; an illegal one is no lookup."""
    gateway, coordinator = (
        caller(guarded.nodes, principal(guarded.nodes, name)) for name in ("gateway", "coordinator")
    )
    async with gateway, coordinator:
        for state in WAYS:
            job_id = await made(gateway, coordinator, state)
            before = await record(coordinator, job_id)
            for (source, target), (actor, *_) in EDGES.items():
                if source != state:
                    calling = gateway if actor == "gateway" else coordinator
                    moved = await calling.call(MOVE, step(job_id, STATES[source], STATES[target], actor))
                    assert (moved.applied, moved.current_status) == (False, STATES[state])
            assert await record(coordinator, job_id) == before
            if state in TERMINAL:
                await told(guarded.nodes.processes["job"], "terminal_write_ignored", job_id=job_id)
        unknown = step("nobody", STATES["QUEUED"], STATES["RUNNING"], "coordinator")
        assert await coordinator.code(MOVE, unknown) == "NOT_FOUND"
        unknown.to_status = STATES["DONE"]  # type: ignore[assignment]
        assert await coordinator.code(MOVE, unknown) == "INVALID_ARGUMENT"


def expectation(guarded: Guarded, shown: Shown, called: Called, request: Any) -> tuple[str, ...]:
    """The codes that a call may end with."""
    name, is_trusted = shown.name, shown.trusted
    if guarded.all_or_none and called.component == INGRESS:
        # Nobody is asked for a certificate, so whoever shows no token is anonymous.
        has_token = any(key == "authorization" for key, _ in shown.metadata)
        name, is_trusted = (name if has_token else ANONYMOUS), True
    elif guarded.all_or_none:
        is_trusted = is_trusted and shown.certificate is not None
    if guarded.nodes.env.get("CHARTER_CA_FILE") and not is_trusted:
        return ("UNAVAILABLE",)  # The handshake fails; there is nobody to give another answer.
    code = verdict(name, called, request)
    return ANSWERED if code is None else (code,)


async def made(gateway: Caller, coordinator: Caller, state: str) -> str:
    """A new job in a state. It is in no queue, so nobody else moves it."""
    created = await gateway.call(CREATE, CreateJobRequest(spec=JobSpec(job_type="probe")))
    job_id: str = created.job_id
    for source, target in itertools.pairwise(["QUEUED", *WAYS[state]]):
        moved = await coordinator.call(MOVE, step(job_id, STATES[source], STATES[target], "coordinator"))
        assert moved.applied
    return job_id


async def record(coordinator: Caller, job_id: str) -> GetJobRecordResponse:
    found: GetJobRecordResponse = await coordinator.call(READ, GetJobRecordRequest(job_id=job_id))
    return found


def step(job_id: str, source: int, target: int, actor: str) -> TransitionJobStatusRequest:
    return TransitionJobStatusRequest(
        job_id=job_id,
        expected_from_status=source,  # type: ignore[arg-type]
        to_status=target,  # type: ignore[arg-type]
        actor=actor,
        reason="probe",
    )


def state_of(number: int) -> str:
    return next((name for name, known in STATES.items() if known == number), "")
