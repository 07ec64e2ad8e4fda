"""Settings that are wrong stop a worker before it does anything, with a sentence for each."""

from __future__ import annotations

import pytest

from tests.support.orchestrator.stack import Node
from tests.support.orchestrator.worker_processes import Crew, wait_for_exit

WRONG = [
    ({"LEASE_SECONDS": "abc"}, ["LEASE_SECONDS"]),
    ({"LEASE_SECONDS": "5", "LEASE_RENEW_SECONDS": "5"}, ["LEASE_SECONDS", "LEASE_RENEW_SECONDS"]),
    ({"LEASE_SECONDS": "-1", "MAX_RETRIES": "-1"}, ["LEASE_SECONDS", "MAX_RETRIES"]),
    ({"WORKER_CONCURRENCY": "0", "POLL_INTERVAL_MS": "1.5"}, ["WORKER_CONCURRENCY", "POLL_INTERVAL_MS"]),
    ({"REAPER_INTERVAL_SECONDS": "nan", "WORKER_PORT": "0"}, ["REAPER_INTERVAL_SECONDS", "WORKER_PORT"]),
    ({"BACKOFF_BASE_SECONDS": "soon", "LOG_LEVEL": "LOUD"}, ["BACKOFF_BASE_SECONDS", "LOG_LEVEL"]),
    ({"DATABASE_URL": ""}, ["DATABASE_URL"]),
    ({"DATABASE_URL": "here:secret"}, ["DATABASE_URL"]),
]


@pytest.mark.req("ORC-164")
def test_wrong_settings_stop_the_start(fresh_crew: Crew) -> None:
    """The exit code is 2, and one line names every variable that is wrong, but no secret."""
    nodes: list[Node] = [fresh_crew.make_worker(**settings).begin() for settings, _ in WRONG]
    for node, (_, names) in zip(nodes, WRONG, strict=True):
        assert wait_for_exit(node) == 2
        (line,) = node.lines()
        assert (line["event"], line["level"]) == ("settings_invalid", "ERROR")
        assert all(name in line["message"] for name in names)
        assert "secret" not in line["message"]
        assert node.errors.read_text() == ""


@pytest.mark.req("ORC-164")
def test_a_port_in_use_stops_the_start(fresh_crew: Crew) -> None:
    """The second worker on a port logs it and ends; the first runs on."""
    (first,) = fresh_crew.start_workers("first")
    port = first.url.rpartition(":")[2]
    second = fresh_crew.make_worker("second", WORKER_PORT=port).begin()
    assert wait_for_exit(second) == 1
    assert second.lines()[-1]["event"] == "start_failed"
    assert first.running
