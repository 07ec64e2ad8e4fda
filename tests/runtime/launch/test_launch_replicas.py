"""Replicas of a node: by the spec, or by an option of the launcher."""

from __future__ import annotations

import pytest

from runtime.launch import launched
from runtime.launch.planning.replicas import WrongReplicas, expand_replica_options, with_replicas
from runtime.node.systems import find_deployment
from tests.runtime.launch.up import run


def test_nodes_can_be_left_out_or_multiplied() -> None:
    _, deployment = find_deployment("orchestrator.local")
    assert list(with_replicas(deployment, {"worker": 0}).nodes) == ["api"]
    assert with_replicas(deployment, {"worker": 3}).nodes["worker"].replicas == 3
    assert with_replicas(deployment, {}) == deployment


@pytest.mark.parametrize(
    ("name", "counts", "message"),
    [
        ("orchestrator.local", {"api": 0}, "Clients call api, so it cannot be left out."),
        ("taskqueue.microservices", {"queue": 0}, "calls queue, so it cannot be left out."),
        ("orchestrator.local", {"wroker": 1}, r"There is no node 'wroker'\..*worker"),
    ],
)
def test_an_impossible_count_is_reported(name: str, counts: dict[str, int], message: str) -> None:
    with pytest.raises(WrongReplicas, match=message):
        launched(name, replicas=counts)


def test_every_node_has_an_option_of_its_own() -> None:
    given = ["up", "orchestrator.local", "--workers", "0", "--apis=2", "--set", "LOG_LEVEL=DEBUG"]
    found = ["up", "orchestrator.local", "--replicas", "worker=0", "--replicas", "api=2"]
    assert expand_replica_options(given) == [*found, "--set", "LOG_LEVEL=DEBUG"]
    assert expand_replica_options(["taskqueue.microservices", "--apis", "2"])[1] == "--apis"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", "some"), "is not NODE=COUNT"),
        (("--apis", "0"), "cannot be left out"),
        (("--oxen", "1"), "No such option"),
    ],
)
def test_a_wrong_count_is_reported(arguments: tuple[str, ...], message: str) -> None:
    done = run("up", "orchestrator.local", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


async def test_a_deployment_comes_up_without_its_workers() -> None:
    async with launched("orchestrator.local", ports="auto", replicas={"worker": 0}) as deployment:
        assert [*deployment.processes] == ["api"]
        assert deployment.endpoints["api"].startswith("http://127.0.0.1:")
