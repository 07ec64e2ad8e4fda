"""The tables of the taskqueue that tests and operators rely on: its events, and the owners of its calls."""

from __future__ import annotations

import pytest

from generated.taskqueue.deployments import MICROSERVICES, MONOLITH
from generated.taskqueue.events import EVENTS
from runtime.model.system import Event
from runtime.observe import log

ENGINE_EVENTS = {each.name for each in vars(log).values() if isinstance(each, Event)}
SERVICE = "/taskqueue.v1.TaskQueuePublicService"


@pytest.mark.req("CH-85")
def test_every_event_that_was_agreed_on_exists() -> None:
    """The names that tests and operators look for are those of the engine and the spec."""
    assert {*EVENTS, *ENGINE_EVENTS} >= {
        *("service_ready", "worker_loop_started", "heartbeat_attempt", "rpc_error", "consistency_anomaly"),
        *("dispatch_race", "dispatch_rescue", "terminal_race", "terminal_write_ignored"),
        *("invalid_transition", "worker_unavailable", "worker_available"),
    }


@pytest.mark.req("CH-85", "CH-86", "TQ-178", "TQ-179")
def test_some_events_are_logged_at_any_level() -> None:
    """The start of a worker and anomalies always, and heartbeats the first time."""
    assert {name for name, event in EVENTS.items() if event.always} == {
        "worker_loop_started",
        "consistency_anomaly",
    }
    assert {name for name, event in EVENTS.items() if event.first_always} == {"heartbeat_attempt"}


@pytest.mark.req("TQ-192", "TQ-193", "TQ-194", "TQ-198")
def test_calls_of_the_monolith_have_owners() -> None:
    """A submit goes to the owner of its key, a call about a job to the owner of its id, a listing to any."""
    assert MICROSERVICES.routing is None
    assert MONOLITH.routing is not None
    assert MONOLITH.routing.keys == {
        f"{SERVICE}/SubmitJob": "client_request_id",
        f"{SERVICE}/GetJobStatus": "job_id",
        f"{SERVICE}/GetJobResult": "job_id",
        f"{SERVICE}/CancelJob": "job_id",
    }
    assert MONOLITH.routing.per_node == {f"{SERVICE}/ListJobs"}
    assert MONOLITH.routing.mints == "job_id"
