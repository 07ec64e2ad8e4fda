"""Features that the queue has and has not, by its spec."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

from generated.objectqueue.lifecycle import TASK
from generated.objectqueue.messages import SubmitTaskRequest, Task
from generated.objectqueue.system import SYSTEM
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.keys import Keys

EDGES = {
    ("Pending", "Running"),
    ("Running", "Completed"),
    ("Running", "Pending"),
    ("Running", "Failed"),
    ("Pending", "Failed"),
    ("Failed", "Pending"),
    ("Completed", "Archived"),
    ("Failed", "Archived"),
    ("Archived", "Completed"),
    ("Archived", "Failed"),
    ("Archived", "Pending"),
}


@pytest.mark.req("OQ-261", "OQ-030")
def test_the_states_and_their_edges() -> None:
    """There are no others."""
    edges = [*TASK.edges.values(), *TASK.by_name]
    assert {(_format_state(each.source), _format_state(each.target)) for each in edges} == EDGES
    assert {_format_state(each) for each in TASK.states} == {one for edge in EDGES for one in edge}


@pytest.mark.req("OQ-261", "OQ-071", "OQ-072", "OQ-029")
def test_shards_are_the_first_digits_of_ids() -> None:
    """All sixteen, about equally often."""
    keys = Keys(TASK, TASK.require_storage(KeptInS3))
    counts = Counter(keys.shard_of(str(uuid.uuid4())) for _ in range(16_000))
    assert sorted(counts) == list("0123456789abcdef")
    assert all(850 < count < 1150 for count in counts.values())


@pytest.mark.req("OQ-265", "OQ-266", "OQ-264")
def test_features_that_the_queue_does_not_have() -> None:
    """Tasks neither depend on each other nor have priorities, and no method has a path on the network.

    One that keeps its tasks in memory listens, because no bucket is there for its clients.
    """
    names = {*Task.DESCRIPTOR.fields_by_name, *SubmitTaskRequest.DESCRIPTOR.fields_by_name}
    assert not {name for name in names if "priorit" in name or "depend" in name or "parent" in name}
    methods = [method for service in SYSTEM.services.values() for method in service.methods]
    assert methods and all(each.route is None for each in methods)
    on_a_bucket = [each for each in SYSTEM.deployments.values() if each.engine == "s3"]
    assert on_a_bucket
    for deployment in on_a_bucket:
        assert not deployment.ingress
        assert all(node.port_variable is None for node in deployment.nodes.values())


@pytest.mark.req("OQ-264", "OQ-268")
def test_a_port_is_only_opened_if_one_is_set() -> None:
    """There is no default for it where nodes run by themselves."""
    assert SYSTEM.variables["METRICS_PORT"].default is None
    for node in SYSTEM.deployments["local"].nodes.values():
        assert "METRICS_PORT" not in node.defaults


def _format_state(state: int) -> str:
    return TASK.states[state].capitalize()
