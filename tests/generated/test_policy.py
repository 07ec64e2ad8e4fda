"""Call policy of the taskqueue: deadlines, retries, idempotency and keepalive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from generated.taskqueue.callers import MATRIX
from generated.taskqueue.policy import CALLS, COMPENSATION, KEEPALIVE, RESCUE, STANDARD
from generated.taskqueue.system import SYSTEM
from runtime.call.call_policy import apply_call_policy, backoff_seconds
from runtime.call.conditions import CallFailed
from runtime.model.system import CallMode, Method
from runtime.transport.grpc.direct_carrier import limits_of
from tests.support.generated.still_world import StillWorld, make_call

METHODS = {method.name: method for service in SYSTEM.services.values() for method in service.methods}
POLICIES = {ref.partition(".")[2]: policy for ref, policy in CALLS.items()}
PUBLIC = ("SubmitJob", "GetJobStatus", "GetJobResult", "CancelJob", "ListJobs")
RETRIED = {
    *PUBLIC,
    *("CreateJob", "DeleteJobIfStatus", "GetJobRecord", "ListJobRecords", "SetCancelRequested"),
    *("EnqueueJob", "ReportWorkOutcome", "StoreResult", "GetResult"),
}
ALWAYS, KEYED, COMPARED, FIRST, NEVER = "always", "when_keyed", "compare_and_set", "first_write_wins", "never"
LISTING = ("status_filter", "sort", "page")


async def record_attempts(
    name: str, code: str, *, mode: CallMode | None = None, deadline: float | None = None, **fields: Any
) -> tuple[list[float], StillWorld]:
    """Call a method that always fails with a code; return the timeout of each attempt, and the world."""
    world, patience = StillWorld(), []
    method: Method = METHODS[name]

    async def attempt(_request: Any, _call: Any, seconds: float) -> Any:
        patience.append(seconds)
        raise CallFailed(code, "fails on purpose", "test")

    with pytest.raises(CallFailed):
        await apply_call_policy(method, attempt, "gateway", mode)(
            method.request(**fields), make_call(world, deadline=deadline)
        )
    return patience, world


@pytest.mark.req("TQ-113")
@pytest.mark.parametrize(
    ("name", "class_", "key"),
    [
        ("SubmitJob", KEYED, ("client_request_id",)),
        ("GetJobStatus", ALWAYS, ("job_id",)),
        ("GetJobResult", ALWAYS, ("job_id",)),
        ("CancelJob", ALWAYS, ("job_id",)),
        ("ListJobs", ALWAYS, LISTING),
    ],
)
def test_idempotency_of_public_methods(name: str, class_: str, key: tuple[str, ...]) -> None:
    """A submit may be repeated under its key, everything else as it is."""
    assert (POLICIES[name].idempotency, POLICIES[name].key) == (class_, key)


@pytest.mark.req("TQ-114")
@pytest.mark.parametrize(
    ("name", "class_", "key"),
    [
        ("CreateJob", KEYED, ("client_request_id",)),
        ("DeleteJobIfStatus", COMPARED, ("job_id", "expected_status")),
        ("EnqueueJob", ALWAYS, ("job_id",)),
        ("RemoveJobIfPresent", ALWAYS, ("job_id",)),
        ("TransitionJobStatus", COMPARED, ("job_id", "expected_from_status", "to_status")),
        ("SetCancelRequested", ALWAYS, ("job_id",)),
        ("WorkerHeartbeat", ALWAYS, ("worker_id",)),
        ("FetchWork", NEVER, ()),
        ("DequeueJob", NEVER, ()),
        ("ReportWorkOutcome", FIRST, ("job_id",)),
        ("StoreResult", FIRST, ("job_id",)),
        ("GetJobRecord", ALWAYS, ("job_id",)),
        ("ListJobRecords", ALWAYS, LISTING),
        ("GetResult", ALWAYS, ("job_id",)),
    ],
)
def test_idempotency_of_internal_methods(name: str, class_: str, key: tuple[str, ...]) -> None:
    """Each internal method has the class of the table, and the fields that make two calls the same."""
    assert (POLICIES[name].idempotency, POLICIES[name].key) == (class_, key)


@pytest.mark.req("TQ-160", "TQ-161")
def test_every_method_has_its_deadline() -> None:
    """Submit and cancel have three seconds, fetching work one and a half, everything else one."""
    longer = {"SubmitJob": 3000, "CancelJob": 3000, "FetchWork": 1500}
    assert {name: policy.deadline_ms for name, policy in POLICIES.items()} == {
        name: longer.get(name, 1000) for name in METHODS
    }


@pytest.mark.req("TQ-160", "TQ-161", "CH-73")
async def test_an_attempt_has_the_deadline_or_what_is_left() -> None:
    """A call has its own deadline, but never more time than its caller."""
    fetching, _ = await record_attempts("FetchWork", "INTERNAL")
    assert fetching == [1.5]
    for left, expected in ((None, 1.0), (5.0, 1.0), (0.25, 0.25)):
        patience, _ = await record_attempts("GetJobRecord", "INTERNAL", deadline=left)
        assert patience == [expected]


@pytest.mark.req("CH-74")
async def test_a_deadline_is_for_one_attempt() -> None:
    """Each retry has the whole deadline again, as long as no caller waits for the answer."""
    patience, _ = await record_attempts("GetJobRecord", "UNAVAILABLE")
    assert patience == [1.0] * 4


@pytest.mark.req("CH-73")
@pytest.mark.parametrize("mode", [COMPENSATION, RESCUE])
async def test_putting_things_right_does_not_die_with_the_caller(mode: CallMode) -> None:
    """A compensation or rescue has its own second, though the caller's deadline is all but over."""
    patience, _ = await record_attempts("EnqueueJob", "INTERNAL", mode=mode, deadline=0.001, job_id="a")
    assert patience == [1.0]


@pytest.mark.req("CH-27", "CH-01")
async def test_a_rescue_is_one_attempt() -> None:
    """The coordinator's enqueue is tried once, even on a code that is retried elsewhere."""
    permission = MATRIX[METHODS["EnqueueJob"].path]["coordinator"]
    patience, world = await record_attempts("EnqueueJob", "UNAVAILABLE", mode=permission.mode, job_id="a")
    assert (patience, world.waited) == ([1.0], [])


@pytest.mark.req("TQ-156", "TQ-157")
@pytest.mark.parametrize("code", [code.name for code in grpc.StatusCode if code.name != "OK"])
async def test_only_passing_failures_are_retried(code: str) -> None:
    """Of all codes, three are worth another attempt."""
    patience, _ = await record_attempts("GetJobStatus", code)
    passing = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")
    assert len(patience) == (4 if code in passing else 1)


@pytest.mark.req("TQ-158")
async def test_the_waiting_grows_and_is_drawn_from_the_whole_range() -> None:
    """Four attempts in all, with a wait from zero to 100, 200 and 400 ms between them."""
    patience, world = await record_attempts("GetJobStatus", "UNAVAILABLE")
    assert len(patience) == 4
    assert world.bounds == [(0.0, 0.1), (0.0, 0.2), (0.0, 0.4)]


@pytest.mark.req("CH-76", "TQ-158")
def test_no_wait_is_longer_than_a_second() -> None:
    """With more attempts than the profile has, the bound stops at its cap."""
    assert STANDARD.max_ms == 1000
    assert [backoff_seconds(STANDARD, tried, StillWorld()) for tried in (4, 5, 6, 50)] == [0.8, 1.0, 1.0, 1.0]


@pytest.mark.req("TQ-159", "CH-75")
@pytest.mark.parametrize("name", ["SubmitJob", "CreateJob"])
@pytest.mark.parametrize(("key", "attempts"), [("", 1), ("k", 4), (" ", 4)])
async def test_a_submit_is_retried_under_a_key_only(name: str, key: str, attempts: int) -> None:
    """Without a key a repeat would be a new job, so there is none."""
    patience, _ = await record_attempts(name, "UNAVAILABLE", client_request_id=key)
    assert len(patience) == attempts


@pytest.mark.req("CH-75")
def test_what_is_safe_to_repeat_is_retried_and_nothing_else() -> None:
    """Dequeue, remove, fetch, transition and heartbeat are never repeated on their own."""
    assert {name for name, policy in POLICIES.items() if policy.retry is STANDARD} == RETRIED
    assert not any(policy.retry for name, policy in POLICIES.items() if name not in RETRIED)


def test_both_ends_of_a_connection_agree_on_pings() -> None:
    """A client pings no oftener than a server bears, and gives up on a ping before it sends the next."""
    limits = limits_of(SYSTEM)
    assert limits.ping_every_s >= limits.shortest_ping_s
    assert limits.ping_timeout_s < limits.ping_every_s
    assert SYSTEM.keepalive is KEEPALIVE


SERVICE_CONFIG = Path(__file__).parents[2] / "generated/taskqueue/deploy/service_config.json"


@pytest.fixture(scope="module")
def service_config() -> dict[str, Any]:
    """The service config by the path of each method."""
    rows = json.loads(SERVICE_CONFIG.read_text(encoding="utf-8"))["methodConfig"]
    return {f"/{name['service']}/{name['method']}": row for row in rows for name in row["name"]}


@pytest.mark.req("TQ-160", "TQ-161")
def test_the_service_config_has_the_same_deadlines(service_config: dict[str, Any]) -> None:
    """Clients in other languages wait as long as ours."""
    seconds = {path: float(row["timeout"].removesuffix("s")) for path, row in service_config.items()}
    assert seconds == {method.path: method.policy.deadline_ms / 1000 for method in METHODS.values()}


@pytest.mark.req("TQ-156", "TQ-158", "TQ-159")
def test_the_service_config_retries_what_needs_no_key(service_config: dict[str, Any]) -> None:
    """The format knows no condition on a request, so it retries only what is always safe to repeat."""
    retried = {path: row["retryPolicy"] for path, row in service_config.items() if "retryPolicy" in row}
    assert set(retried) == {METHODS[name].path for name in RETRIED - {"SubmitJob", "CreateJob"}}
    for policy in retried.values():
        assert set(policy["retryableStatusCodes"]) == STANDARD.codes
        assert (policy["maxAttempts"], policy["initialBackoff"], policy["maxBackoff"]) == (4, "0.1s", "1s")
        assert policy["backoffMultiplier"] == 2.0
