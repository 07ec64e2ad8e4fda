"""The whole caller matrix against running nodes: each caller, each method, each condition."""

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
from runtime.launch import Launched
from tests.support.eventually import eventually
from tests.support.taskqueue.callers import Caller, Credentials, all_callers, caller, principal
from tests.support.taskqueue.forked_deployments import launched_by_fork
from tests.support.taskqueue.logs import lines, wait_for_line
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
"""How a call ends that reached its handler; the probes are about a job that does not exist."""
TERMINAL = ("DONE", "FAILED", "CANCELED")
NUMBERS = (*STATES.values(), 9)
"""Every state, none, and one that there is not."""
CREATE, READ, TRANSITION = (
    next(each for each in METHODS if each.method == name)
    for name in ("CreateJob", "GetJobRecord", "TransitionJobStatus")
)
INGRESS = "gateway"
PATHS = {
    "QUEUED": [],
    "RUNNING": ["RUNNING"],
    "DONE": ["RUNNING", "DONE"],
    "FAILED": ["RUNNING", "FAILED"],
    "CANCELED": ["RUNNING", "CANCELED"],
}
"""How the coordinator brings a new job into each state."""


class Guarded(NamedTuple):
    """A deployment, and whether its listeners ask every caller for a certificate or none."""

    nodes: Launched
    all_or_none: bool

    def caller(self, name: str) -> Caller:
        """A principal with its credentials."""
        return caller(self.nodes, principal(self.nodes, name))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["tls", "tls by direct", "tokens"])
async def guarded(request: pytest.FixtureRequest) -> AsyncIterator[Guarded]:
    """A deployment whose nodes authenticate by certificate or by token."""
    by = "direct" if request.param == "tls by direct" else "grpcio"
    async with launched_by_fork(
        "taskqueue.microservices", tls=request.param != "tokens", carrier=by
    ) as running:
        yield Guarded(running, request.param == "tls")


@pytest.mark.req("TQ-019", "TQ-020", "TQ-021", "TQ-022", "TQ-023", "TQ-060", "CH-65", "CH-01")
async def test_each_caller_may_call_what_the_spec_permits_and_nothing_else(guarded: Guarded) -> None:
    """Each call ends as an oracle reads it from the YAML: answered, unauthenticated, or not permitted."""
    wrong: list[str] = []
    tried = 0
    for sort, credentials in all_callers(guarded.nodes).items():
        async with caller(guarded.nodes, credentials) as calling:
            for called in METHODS:
                for request in requests(credentials.name or "gateway", called):
                    expected = expected_codes(guarded, credentials, called, request)
                    # The component behind the node may not answer in time on a busy machine.
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
async def test_each_transition_is_for_the_actors_of_the_lifecycle(guarded: Guarded) -> None:
    """Each pair of states by each actor applies, or is refused with its code and changes no record."""
    gateway, coordinator = (
        caller(guarded.nodes, principal(guarded.nodes, name)) for name in ("gateway", "coordinator")
    )
    invalid = 0
    async with gateway, coordinator:
        still = {state: await create_job(gateway, coordinator, state) for state in PATHS}
        before = {state: await read_record(coordinator, job_id) for state, job_id in still.items()}
        for name in (*PRINCIPALS, ANONYMOUS):
            credentials = Credentials(name) if name == ANONYMOUS else principal(guarded.nodes, name)
            async with caller(guarded.nodes, credentials) as calling:
                for source, target in itertools.product(NUMBERS, NUMBERS):
                    request = step(still.get(format_state(source), still["QUEUED"]), source, target, name)
                    expected = expected_codes(guarded, credentials, TRANSITION, request)
                    if expected == ANSWERED:
                        # It will apply, so it gets a job of its own.
                        request.job_id = await create_job(gateway, coordinator, format_state(source))
                        answer = await calling.call(TRANSITION, request)
                        assert (answer.applied, answer.current_status) == (True, target)
                        continue
                    assert (await calling.code(TRANSITION, request),) == expected, (name, request)
                    invalid += expected == ("INVALID_ARGUMENT",)
        assert {state: await read_record(coordinator, job_id) for state, job_id in still.items()} == before

    async def count_lines() -> int:
        log = lines(guarded.nodes.processes["job"])
        return sum(line["event"] == "invalid_transition" and line["job_id"] in still.values() for line in log)

    await eventually(
        count_lines, wanted=lambda count: count == invalid, what="a line for each invalid transition"
    )


@pytest.mark.req("TQ-063", "TQ-064", "TQ-155", "TQ-167", "CH-64", "CH-66")
async def test_a_transition_with_a_stale_expectation_changes_nothing(guarded: Guarded) -> None:
    """A legal transition from a stale state is answered with the true one; an illegal one needs no lookup."""
    gateway, coordinator = (
        caller(guarded.nodes, principal(guarded.nodes, name)) for name in ("gateway", "coordinator")
    )
    async with gateway, coordinator:
        for state in PATHS:
            job_id = await create_job(gateway, coordinator, state)
            before = await read_record(coordinator, job_id)
            for (source, target), (actor, *_) in EDGES.items():
                if source != state:
                    calling = gateway if actor == "gateway" else coordinator
                    answer = await calling.call(
                        TRANSITION, step(job_id, STATES[source], STATES[target], actor)
                    )
                    assert (answer.applied, answer.current_status) == (False, STATES[state])
            assert await read_record(coordinator, job_id) == before
            if state in TERMINAL:
                await wait_for_line(guarded.nodes.processes["job"], "terminal_write_ignored", job_id=job_id)
        unknown = step("nobody", STATES["QUEUED"], STATES["RUNNING"], "coordinator")
        assert await coordinator.code(TRANSITION, unknown) == "NOT_FOUND"
        unknown.to_status = STATES["DONE"]  # type: ignore[assignment]
        assert await coordinator.code(TRANSITION, unknown) == "INVALID_ARGUMENT"


def expected_codes(
    guarded: Guarded, credentials: Credentials, called: Called, request: Any
) -> tuple[str, ...]:
    """The codes that a call may end with."""
    name, is_trusted = credentials.name, credentials.trusted
    if guarded.all_or_none and called.component == INGRESS:
        # No certificate is asked for, so a caller without a token is anonymous.
        has_token = any(key == "authorization" for key, _ in credentials.metadata)
        name, is_trusted = (name if has_token else ANONYMOUS), True
    elif guarded.all_or_none:
        is_trusted = is_trusted and credentials.certificate is not None
    if guarded.nodes.env.get("CHARTER_CA_FILE") and not is_trusted:
        return ("UNAVAILABLE",)  # The handshake fails, so there is no other answer.
    code = verdict(name, called, request)
    return ANSWERED if code is None else (code,)


async def create_job(gateway: Caller, coordinator: Caller, state: str) -> str:
    """Create a job in a state. It is in no queue, so no other component changes it."""
    created = await gateway.call(CREATE, CreateJobRequest(spec=JobSpec(job_type="probe")))
    job_id: str = created.job_id
    for source, target in itertools.pairwise(["QUEUED", *PATHS[state]]):
        answer = await coordinator.call(
            TRANSITION, step(job_id, STATES[source], STATES[target], "coordinator")
        )
        assert answer.applied
    return job_id


async def read_record(coordinator: Caller, job_id: str) -> GetJobRecordResponse:
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


def format_state(number: int) -> str:
    return next((name for name, known in STATES.items() if known == number), "")
