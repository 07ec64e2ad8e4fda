"""The log checker reports each kind of fault."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.taskqueue.log_check import find_problems

LINE = {"ts_ms": 1, "level": "INFO", "service": "job", "method": "", "event": "plain", "message": ""}


def text(**fields: Any) -> str:
    return json.dumps({**LINE, **fields})


def step(name: str, source: str | None, target: str | None, caller: str) -> str:
    states = {"from_status": source, "to_status": target}
    fields = {key: value for key, value in states.items() if value is not None}
    return text(event="transition", entity="job", job_id="x", transition=name, caller=caller, **fields)


CREATE = step("create", None, "QUEUED", "gateway")
START = step("dispatch", "QUEUED", "RUNNING", "coordinator")
FINISH = step("complete", "RUNNING", "DONE", "coordinator")
DELETE = step("delete", "QUEUED", None, "gateway")


@pytest.mark.parametrize(
    "lines",
    [
        [text()],
        [CREATE, START, FINISH],
        [CREATE, DELETE],
        [CREATE, step("withdraw", "QUEUED", "CANCELED", "gateway")],
        [text(event="rpc_error", grpc_code="NOT_FOUND", job_id="x", latency_ms=0.5, caller="gateway")],
        [text(event="consistency_anomaly", message="a job may have left the queue unseen: x")],
        [text(event="consistency_anomaly", job_id="x", current_status="DONE")],
    ],
)
def test_a_valid_log_passes(lines: list[str]) -> None:
    """Whole lives, errors and anomalies as they should be are no problems."""
    assert find_problems(lines) == []


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["{"], "no JSON"),
        (["[]"], "no object"),
        ([text(ts_ms="1")], "ts_ms must be there"),
        ([text(message=None)], "message must be there"),
        ([text(level="LOUD")], "no such level"),
        ([text(job_id="")], "job_id must be"),
        ([text(current_status="ASLEEP")], "must name a state"),
        ([text(grpc_code="OK")], "other than OK"),
        ([text(event="rpc_error")], "needs its code"),
        ([text(event="consistency_anomaly")], "needs its job_id"),
        ([text(event="transition", entity="stone")], "needs its entity"),
        ([START], "it was None"),
        ([CREATE, CREATE], "it was QUEUED"),
        ([CREATE, FINISH], "it was QUEUED"),
        ([CREATE, START, FINISH, START], "it was DONE"),
        ([CREATE, DELETE, CREATE], "it was gone"),
        ([step("create", None, "DONE", "gateway")], "no job goes from None to DONE"),
        ([CREATE, step("dispatch", "QUEUED", "DONE", "coordinator")], "no job goes from QUEUED to DONE"),
        ([CREATE, START, step("delete", "RUNNING", None, "gateway")], "no job goes from RUNNING to None"),
        ([CREATE, step("complete", "QUEUED", "RUNNING", "coordinator")], "is called dispatch"),
        ([CREATE, step("dispatch", "QUEUED", "RUNNING", "gateway")], "gateway may not dispatch it"),
    ],
)
def test_a_fault_in_a_log_is_found(lines: list[str], complaint: str) -> None:
    """Each kind of fault is reported with the line that has it."""
    found = find_problems(lines)
    assert complaint in found[0]
    assert found[0].startswith(f"line {len(lines)}")
