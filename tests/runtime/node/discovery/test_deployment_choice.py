"""Which of the deployments on a network is meant: one by its name, the only one, or none."""

from __future__ import annotations

import pytest

from runtime.node.discovery import NotLocated, Offer, SearchTarget, SeveralDeployments
from runtime.node.discovery.choice import choose

SOUGHT = {
    "shop": SearchTarget("_shop._tcp.local.", ("http_port",)),
    "mill": SearchTarget("_mill._tcp.local.", ("http_port",)),
}


def offer(node: str, deployment: str, port: int) -> Offer:
    properties = {"http_port": str(port)} | ({"deployment": deployment} if deployment else {})
    return Offer(SOUGHT[node].service, f"host-{port}", "127.0.0.1", port, properties)


A = {"shop": offer("shop", "a", 1), "mill": offer("mill", "a", 2)}
B = {"shop": offer("shop", "b", 3), "mill": offer("mill", "b", 4)}
BOTH = {node: [B[node], A[node]] for node in SOUGHT}


def test_the_only_deployment_needs_no_name() -> None:
    assert choose(SOUGHT, {node: [each] for node, each in A.items()}, None) == A


@pytest.mark.parametrize(("name", "expected"), [("a", A), ("b", B)])
def test_a_name_chooses_all_nodes_of_one_deployment(name: str, expected: dict[str, Offer]) -> None:
    assert choose(SOUGHT, BOTH, name) == expected


def test_several_deployments_are_named_and_none_is_taken() -> None:
    with pytest.raises(SeveralDeployments, match="Several deployments are on the network: a, b"):
        choose(SOUGHT, BOTH, None)


def test_nodes_of_two_deployments_make_none() -> None:
    """The shop of one and the mill of another are two deployments, neither of which is complete."""
    with pytest.raises(SeveralDeployments, match="a, b"):
        choose(SOUGHT, {"shop": [A["shop"]], "mill": [B["mill"]]}, None)
    with pytest.raises(NotLocated, match=r"No mill of a is found on the network\. There are: a, b\."):
        choose(SOUGHT, {"shop": [A["shop"]], "mill": [B["mill"]]}, "a")


def test_nothing_on_the_network_is_said_so() -> None:
    with pytest.raises(NotLocated, match=r"No shop is found on the network\."):
        choose(SOUGHT, {}, None)


@pytest.mark.parametrize("name", ["a", None])
def test_a_name_that_two_deployments_have_is_no_choice(name: str | None) -> None:
    twice = {"shop": [A["shop"], offer("shop", "a", 5)], "mill": [A["mill"]]}
    with pytest.raises(
        SeveralDeployments, match=r"a is the name of several deployments.*127\.0\.0\.1:1, 127\.0\.0\.1:5"
    ):
        choose(SOUGHT, twice, name)


def test_replicas_of_a_node_are_one_deployment() -> None:
    sought = {"shop": SOUGHT["shop"]._replace(replicas=2)}
    assert choose(sought, {"shop": [offer("shop", "a", 5), A["shop"]]}, None) == {"shop": A["shop"]}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_address_that_is_known_decides(host: str) -> None:
    sought = SOUGHT | {"shop": SOUGHT["shop"]._replace(known={"http_port": f"{host}:3"})}
    assert choose(sought, BOTH, None) == B


@pytest.mark.parametrize("place", ["127.0.0.1:9", "192.0.2.1:3", "no.such.host.invalid:3", "no place"])
def test_an_address_that_is_not_announced_leaves_no_choice(place: str) -> None:
    sought = SOUGHT | {"shop": SOUGHT["shop"]._replace(known={"http_port": place})}
    with pytest.raises(NotLocated, match="No deployment on the network has its shop at "):
        choose(sought, BOTH, None)


def test_a_deployment_without_a_name_is_one_of_several() -> None:
    unnamed = {"shop": [A["shop"], offer("shop", "", 7)], "mill": [A["mill"]]}
    with pytest.raises(SeveralDeployments, match="a, one without a name"):
        choose(SOUGHT, unnamed, None)
    assert choose(SOUGHT, unnamed, "a") == A
