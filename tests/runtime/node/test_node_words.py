"""Nodes on demand, omitted components, ports that are off, and direct users of a store."""

from __future__ import annotations

import asyncio
import io
import json
import urllib.request

import pytest

from runtime.call import Channel
from runtime.launch.buckets import Buckets
from runtime.launch.planning.plan import list_settable
from runtime.launch.planning.ports import ReservedPorts, list_slots
from runtime.launch.planning.replicas import with_replicas
from runtime.node.assembly import Assembly
from runtime.node.node import Node
from runtime.node.systems import find_deployment, load_system
from runtime.world import RealWorld
from tests.runtime.hand_world import HandWorld
from tests.support.s3.fixtures import Bucket

LOCAL = "objectqueue.local"
ENVIRON = {"S3_ENDPOINT": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}


def nowhere(_parts: Assembly, component: str, service: str) -> Channel:
    raise AssertionError(f"{component} calls {service} elsewhere")


def assemble(node: str, **environ: str) -> tuple[Assembly, list[dict[str, str]]]:
    """Assemble a node; return it with its log lines."""
    system, deployment = find_deployment(LOCAL)
    lines = io.StringIO()
    table = deployment.nodes[node]
    made = Assembly(system, deployment, table, {**ENVIRON, **environ}, HandWorld(), nowhere, stream=lines)
    return made, [json.loads(line) for line in lines.getvalue().splitlines()]


@pytest.mark.req("OQ-140", "OQ-209")
@pytest.mark.parametrize(("without", "hosts"), [("false", ("worker", "monitor")), ("1", ("worker",))])
def test_a_component_is_left_out_where_its_variable_says_so(without: str, hosts: tuple[str, ...]) -> None:
    """Neither its handler nor its clocks are there."""
    made, _ = assemble("worker", QO_NO_MONITOR=without)
    assert made.hosts == hosts
    assert tuple(made.handlers) == hosts


@pytest.mark.req("OQ-220")
def test_an_unread_variable_is_reported_at_the_start() -> None:
    """It stops nothing: the one who set it may have meant another release."""
    _, lines = assemble("worker", QO_INDEX_MOD="hybrid")
    assert [(each["event"], each["message"]) for each in lines] == [
        ("setting_unknown", "QO_INDEX_MOD is set, and nothing reads it; QO_INDEX_MODE?")
    ]


@pytest.mark.req("OQ-264", "OQ-268")
async def test_nothing_listens_unless_a_port_is_named(bucket: Bucket) -> None:
    """And then the health of the node is served there."""
    for port, listens in (("", False), ("0", True)):
        environ = {**bucket.variables, "METRICS_PORT": port}
        node = Node(load_system("objectqueue"), "local", "monitor", environ, RealWorld(), io.StringIO())
        await node.start()
        try:
            assert (node.http_port is not None) is listens
            if node.http_port is not None:
                answer = await asyncio.to_thread(
                    urllib.request.urlopen, f"http://127.0.0.1:{node.http_port}/readyz", timeout=60
                )
                assert answer.status == 200
        finally:
            await node.stop()


def test_a_node_on_demand_is_no_process() -> None:
    """Unless an option asks for some of it."""
    _, deployment = find_deployment(LOCAL)
    assert [place.name for place in list_slots(deployment)] == ["worker"]
    more = with_replicas(deployment, {"monitor": 1, "worker": 2})
    assert [place.name for place in list_slots(more)] == ["monitor", "worker-0", "worker-1"]
    assert [place.name for place in list_slots(with_replicas(deployment, {"worker": 0}))] == []


def test_a_port_without_a_default_is_any_that_is_free() -> None:
    """A launcher always has one for it, because it asks there how the node is."""
    system, deployment = find_deployment(LOCAL)
    ports = ReservedPorts()
    try:
        ports.reserve(system, deployment, {}, auto=False)
        assert ports.http["worker"] > 0
    finally:
        ports.release()


def test_a_user_of_the_store_has_its_address() -> None:
    """With the key, for there is no node in between that would need none."""
    system = load_system("objectqueue")
    found = Buckets(system, {**ENVIRON, "QO_QUEUE": "red"})
    assert found.variables == {
        **ENVIRON,
        "S3_BUCKET": "task-queue",
        "S3_REGION": "us-east-1",
        "QO_QUEUE": "red",
    }
    assert found.endpoints == {"s3": ENVIRON["S3_ENDPOINT"]}


def test_other_nodes_have_no_variables_of_stores() -> None:
    """A caller of nodes needs no access to their stores."""
    assert Buckets(load_system("queuey"), {"AWS_ACCESS_KEY_ID": "k"}).variables == {}
    assert Buckets(load_system("priority"), {}).endpoints == {}


def test_the_key_of_a_store_may_be_given() -> None:
    """As any other variable that nodes read."""
    assert {"S3_ENDPOINT", "AWS_ACCESS_KEY_ID", "QO_QUEUE", "QO_LOG"} <= set(
        list_settable(*find_deployment(LOCAL))
    )
