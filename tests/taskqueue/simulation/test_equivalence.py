"""Both designs answer the same calls alike, field by field."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generated.taskqueue.messages import CancelJobResponse
from handlers.taskqueue.gateway import Gateway
from tests.support.deep import DEEP
from tests.support.taskqueue.equivalence import Step, collect_answers

SEQUENCES = 5000 if DEEP else 30

SPECS = st.fixed_dictionaries(
    {"job_type": st.sampled_from(["resize", "fail", "other"])},
    optional={
        "work_duration_ms": st.sampled_from([0, 40, 700]),
        "payload_size_bytes": st.sampled_from([0, 1, 300, 262144, 262145]),
        "labels": st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]), max_size=2),
    },
)
JOBS = st.integers(-1, 9)


def step(name: str, **arguments: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    """A call with arguments drawn from strategies."""
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


STEPS = st.one_of(
    st.builds(
        lambda spec, key: ("submit", {"key": key, **spec}), SPECS, st.sampled_from(["", "", "k1", "k2", "k3"])
    ),
    st.just(("submit", {})),
    step("status", job=JOBS),
    step("result", job=JOBS),
    step("cancel", job=JOBS, reason=st.sampled_from(["", "no longer needed", "é" * 900])),
    step(
        "list",
        statuses=st.lists(st.integers(0, 6), max_size=3),
        sort=st.integers(0, 3),
        size=st.sampled_from([0, 2, 500]),
        token=st.sampled_from(["", "", "1", "abc", "-1"]),
    ),
    st.just(("settle", {})),
)
SEQUENCE = st.builds(
    lambda rounds: [each for steps in rounds for each in (("block", {}), *steps, ("settle", {}))],
    st.lists(st.lists(STEPS, min_size=1, max_size=7), min_size=1, max_size=2),
)


@pytest.mark.no_cover  # Many runs of two whole deployments; the code that they run is covered elsewhere.
@pytest.mark.req("TQ-002", "TQ-066", "TQ-217", "CH-89")
@settings(
    max_examples=SEQUENCES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=not DEEP
)
@given(steps=SEQUENCE)
def test_both_designs_answer_every_sequence_of_calls_alike(steps: list[Step]) -> None:
    """Whatever is called, in whatever order, six services and six monolith nodes give the same answers."""
    assert collect_answers("microservices", steps) == collect_answers("monolith", steps)


@pytest.mark.req("TQ-002")
def test_a_difference_in_one_design_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is able to fail: a gateway that answers a repeated cancel otherwise is detected."""
    steps: list[Step] = [
        ("block", {}),
        ("submit", {"job_type": "resize"}),
        ("cancel", {"job": 6, "reason": ""}),
        ("cancel", {"job": 6, "reason": ""}),
    ]
    same = collect_answers("microservices", steps)
    assert same == collect_answers("monolith", steps)
    original = Gateway.cancel_job

    async def different(self: Gateway, request: object, call: object) -> CancelJobResponse:
        answer = await original(self, request, call)  # type: ignore[arg-type]
        answer.already_terminal = False
        return answer

    monkeypatch.setattr(Gateway, "cancel_job", different)
    assert collect_answers("monolith", steps) != same
