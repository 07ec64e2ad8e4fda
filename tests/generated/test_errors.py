"""The conditions of the taskqueue: codes, retry advice, messages and soft outcomes."""

from __future__ import annotations

import ast
import inspect
import string
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from codegen.source.loader import load
from codegen.source.spec import Spec
from generated.taskqueue import errors
from generated.taskqueue.errors import CONDITIONS, ROLES, SOFT_OUTCOMES, UPSTREAM
from generated.taskqueue.policy import STANDARD
from generated.taskqueue.system import SYSTEM
from runtime.call.conditions import Condition

ROOT = Path(__file__).parents[2]
RESPONSES = {
    f"{name}.{method.name}": method.response
    for name, service in SYSTEM.services.items()
    for method in service.methods
}


@pytest.fixture(scope="module")
def spec() -> Spec:
    """The spec, which has the conditions of each method."""
    return load(ROOT / "spec/taskqueue", ROOT)


@pytest.mark.parametrize(
    ("name", "code", "http", "retry"),
    [
        pytest.param("invalid_request", "INVALID_ARGUMENT", 400, "never", marks=pytest.mark.req("TQ-147")),
        pytest.param("illegal_transition", "INVALID_ARGUMENT", 400, "never", marks=pytest.mark.req("CH-64")),
        pytest.param("job_not_found", "NOT_FOUND", 404, "never", marks=pytest.mark.req("TQ-148")),
        pytest.param(
            "request_key_reused", "FAILED_PRECONDITION", 409, "never", marks=pytest.mark.req("TQ-149")
        ),
        pytest.param(
            "capacity_exhausted", "RESOURCE_EXHAUSTED", 429, "with_backoff", marks=pytest.mark.req("TQ-150")
        ),
        pytest.param(
            "upstream_unavailable", "UNAVAILABLE", 503, "with_backoff", marks=pytest.mark.req("TQ-151")
        ),
        pytest.param(
            "submit_not_accepted", "UNAVAILABLE", 503, "with_backoff", marks=pytest.mark.req("TQ-151")
        ),
        pytest.param(
            "cancel_not_completed", "UNAVAILABLE", 503, "with_backoff", marks=pytest.mark.req("TQ-151")
        ),
        pytest.param("result_missing", "UNAVAILABLE", 503, "with_backoff", marks=pytest.mark.req("TQ-152")),
        pytest.param(
            "deadline_exceeded", "DEADLINE_EXCEEDED", 504, "if_idempotent", marks=pytest.mark.req("TQ-153")
        ),
        pytest.param("unexpected", "INTERNAL", 500, "with_care", marks=pytest.mark.req("TQ-154")),
        ("storage_unavailable", "UNAVAILABLE", 503, "with_backoff"),
        pytest.param("unauthenticated", "UNAUTHENTICATED", 401, "never", marks=pytest.mark.req("CH-65")),
        pytest.param("permission_denied", "PERMISSION_DENIED", 403, "never", marks=pytest.mark.req("CH-65")),
    ],
)
def test_a_condition_has_this_code_and_advice(name: str, code: str, http: int, retry: str) -> None:
    """Each condition answers with one code of each transport and says whether a retry can help."""
    condition = CONDITIONS[name]
    assert (condition.grpc, condition.http, condition.retry) == (code, http, retry)
    assert condition.code == name


def test_there_is_no_condition_without_a_row_above() -> None:
    """The table of codes is complete: fourteen conditions answer with one."""
    assert len(CONDITIONS) == 14


@pytest.mark.req("TQ-147", "TQ-148", "TQ-149", "CH-65")
def test_what_is_never_retried_is_in_no_retry_profile() -> None:
    """The advice of a condition and the codes of the retry profile do not contradict each other."""
    for condition in CONDITIONS.values():
        assert (condition.grpc in STANDARD.codes) == (condition.retry in ("with_backoff", "if_idempotent"))


@pytest.mark.req("TQ-150", "CH-78")
def test_nothing_raises_the_condition_for_lack_of_capacity(spec: Spec) -> None:
    """RESOURCE_EXHAUSTED is declared, but this version uses it nowhere: no method, no role, no handler."""
    assert spec.errors.conditions["capacity_exhausted"].reserved
    assert not any("capacity_exhausted" in row.method.raises for row in spec.methods.values())
    assert errors.CapacityExhausted not in ROLES.values()
    for path in (ROOT / "handlers").rglob("*.py"):
        named = {
            getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(ast.parse(path.read_text()))
        }
        assert "CapacityExhausted" not in named, path


def test_every_other_condition_is_raised_by_a_method_or_by_the_engine(spec: Spec) -> None:
    """A condition that nothing can raise would be a promise without meaning."""
    raised = {name for row in spec.methods.values() for name in row.method.raises}
    assert raised | {condition.code for condition in ROLES.values()} | {"capacity_exhausted"} == {
        *CONDITIONS,
        *SOFT_OUTCOMES,
    }


@pytest.mark.req("CH-77", "TQ-151", "TQ-153")
def test_how_the_failure_of_another_component_looks_from_outside() -> None:
    """Three codes pass through, a downstream timeout looks like an outage, the rest is unexpected."""
    assert UPSTREAM.pass_through == {"INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"}
    assert UPSTREAM.unavailable == {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
    assert ROLES["upstream_unavailable"].grpc == "UNAVAILABLE"
    assert ROLES["deadline_exceeded"].grpc == "DEADLINE_EXCEEDED"
    assert ROLES["unexpected"].grpc == "INTERNAL"


def rendered(condition: type[Condition]) -> tuple[Condition, dict[str, str]]:
    """Create a condition with a recognizable value for each of its fields."""
    names = [name for name in inspect.signature(condition).parameters if name != "self"]
    values = {name: f"<{name}>" for name in names}
    make: Any = condition
    return make(**values), values


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_message_has_the_fields_of_its_condition(name: str, spec: Spec) -> None:
    """The message is the template of the spec with every field filled in; the fields are kept beside it."""
    condition, values = rendered(CONDITIONS[name])
    template = spec.errors.conditions[name].message or ""
    assert condition.message == str(condition) == template.format(**values)
    assert condition.fields == values
    assert set(values) == {field for _, field, _, _ in string.Formatter().parse(template) if field}


@pytest.mark.req("TQ-154")
def test_an_unexpected_failure_has_its_correlation_and_nothing_else() -> None:
    """A client can name the failure to a reader of the log, and learns nothing of the fault."""
    failure = errors.Unexpected(correlation_id="c-1")
    assert failure.message == "unexpected failure, correlation id c-1"
    assert failure.fields == {"correlation_id": "c-1"}


@pytest.mark.req("TQ-146", "TQ-155")
@pytest.mark.parametrize(
    ("method", "outcome", "fields"),
    [
        ("TaskQueuePublicService.GetJobResult", "result_not_ready", {"result_ready": False}),
        ("TaskQueuePublicService.CancelJob", "already_terminal", {"already_terminal": True}),
        ("TaskQueuePublicService.CancelJob", "cancel_repeated", {"accepted": True}),
        ("JobInternalService.TransitionJobStatus", "transition_not_applied", {"applied": False}),
        ("JobInternalService.DeleteJobIfStatus", "delete_not_applied", {"deleted": False}),
    ],
)
def test_these_outcomes_are_no_errors(method: str, outcome: str, fields: dict[str, bool], spec: Spec) -> None:
    """An expected outcome is answered with OK and a field for it."""
    assert SOFT_OUTCOMES[outcome] == fields
    assert outcome in spec.methods[method].method.raises
    assert outcome not in CONDITIONS


@pytest.mark.req("TQ-146", "TQ-155")
def test_soft_outcomes_have_flags_in_the_answers(spec: Spec) -> None:
    """Every method that can end in a soft outcome has a boolean field for it."""
    count = 0
    for ref, row in spec.methods.items():
        for name in SOFT_OUTCOMES.keys() & set(row.method.raises):
            for field in SOFT_OUTCOMES[name]:
                assert RESPONSES[ref].DESCRIPTOR.fields_by_name[field].type == FieldDescriptor.TYPE_BOOL
                count += 1
    assert count == len(SOFT_OUTCOMES)


@pytest.mark.req("TQ-146")
def test_an_answer_has_no_room_for_an_error() -> None:
    """No response has a field for a code or an error text; a failure is the code of the call."""
    for response in RESPONSES.values():
        names = {word for field in response.DESCRIPTOR.fields for word in field.name.split("_")}
        assert not names & {"error", "code", "message", "exception"}
