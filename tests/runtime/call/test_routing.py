"""Owner routing: the hash, who gets which call, and ids that belong to the node that draws them."""

from __future__ import annotations

import random
import uuid
from collections import Counter

import pytest

from generated.studio.deployments import BOOTHS
from generated.studio.messages import (
    FindFilmRequest,
    HandInRequest,
    ListFilmsRequest,
    Order,
)
from generated.studio.methods import (
    DESK_SERVICE_FIND_FILM,
    DESK_SERVICE_HAND_IN,
    DESK_SERVICE_LIST_FILMS,
)
from runtime.call.routing import OwningWorld, Router, find_owner
from runtime.client import Client
from runtime.node.systems import load_system
from runtime.world import RealWorld, World

NODES = [f"node-{index}:50051" for index in range(6)]
ORDER = Order(paper="any")
UNKEYED = HandInRequest(order=ORDER)


class Drawn(RealWorld):
    """A world whose chance is written down."""

    def __init__(self, number: float) -> None:
        self._number = number

    def uniform(self, low: float, high: float) -> float:
        return self._number


def first_choice(world: World) -> str:
    """Where a client's first submit without a key goes."""
    return Router(BOOTHS.routing, world).choose(DESK_SERVICE_HAND_IN, UNKEYED, NODES)


@pytest.mark.req("TQ-191")
@pytest.mark.parametrize(
    ("key", "index"),
    [
        ("a", 4),
        ("client-1", 4),
        ("req-0001", 2),
        ("00000000-0000-4000-8000-000000000000", 0),
        ("3f2b8c1e-9d4a-4e6b-8f10-2a7c5d9e0b13", 3),
    ],
)
def test_the_owner_of_a_key_is_the_same_in_every_language(key: str, index: int) -> None:
    """The vectors are for six nodes: the first 8 bytes of SHA-256, big-endian, modulo 6."""
    assert find_owner(key, 6) == index


@pytest.mark.req("TQ-192")
def test_submits_without_a_key_go_round() -> None:
    """Twelve submits without a key reach each of six nodes twice, in order, wherever they begin."""
    router = Router(BOOTHS.routing, Drawn(2.7))
    chosen = [router.choose(DESK_SERVICE_HAND_IN, UNKEYED, NODES) for _ in range(12)]
    assert chosen == (NODES * 3)[2:14]


@pytest.mark.req("TQ-192")
def test_the_first_submit_of_a_client_goes_to_any_node() -> None:
    """Clients that submit once each do not all burden the first node: chance says where a client begins."""
    assert [first_choice(Drawn(number)) for number in range(6)] == NODES
    chance = random.Random(7)
    begun = Counter(first_choice(Drawn(chance.uniform(0, 2**32))) for _ in range(600))
    assert set(begun) == set(NODES)


@pytest.mark.req("TQ-192")
@pytest.mark.parametrize("number", [0, 4])
async def test_a_client_begins_where_its_world_says(number: int) -> None:
    """The chance is that of the world which a client was given; without one, it is the real one."""
    client = Client(load_system("studio"), lambda _component: NODES, world=Drawn(number))
    address = client._choose_address("desk", DESK_SERVICE_HAND_IN, UNKEYED)
    assert address == NODES[number]


@pytest.mark.req("TQ-193")
def test_submits_with_a_key_go_to_its_owner() -> None:
    """A key always leads to the same node, and does not take a turn from the others."""
    router = Router(BOOTHS.routing, Drawn(0))
    keyed = HandInRequest(order=ORDER, order_number="req-0001")
    assert {router.choose(DESK_SERVICE_HAND_IN, keyed, NODES) for _ in range(5)} == {NODES[2]}
    first = router.choose(DESK_SERVICE_HAND_IN, HandInRequest(order=ORDER), NODES)
    assert first == NODES[0]


@pytest.mark.req("TQ-194")
def test_calls_about_an_entity_go_to_its_owner() -> None:
    """A film is asked for where its id says that it is."""
    request = FindFilmRequest(film_id="3f2b8c1e-9d4a-4e6b-8f10-2a7c5d9e0b13")
    router = Router(BOOTHS.routing, Drawn(0))
    assert router.choose(DESK_SERVICE_FIND_FILM, request, NODES) == NODES[3]


@pytest.mark.req("TQ-198")
def test_a_listing_stays_on_one_node() -> None:
    """Page tokens of one node mean nothing to another, so a listing does not go round."""
    router = Router(BOOTHS.routing, Drawn(0))
    chosen = {router.choose(DESK_SERVICE_LIST_FILMS, ListFilmsRequest(), NODES) for _ in range(4)}
    assert chosen == {NODES[0]}


def test_a_deployment_without_owners_has_one_address_for_everything() -> None:
    """Without routing every call goes to the first address."""
    request = FindFilmRequest(film_id="3f2b8c1e-9d4a-4e6b-8f10-2a7c5d9e0b13")
    assert Router(None, RealWorld()).choose(DESK_SERVICE_FIND_FILM, request, NODES) == NODES[0]


@pytest.mark.req("CH-87", "TQ-052")
def test_a_node_draws_ids_that_it_owns() -> None:
    """Whatever index a node has, its new ids are version 4 UUIDs that belong to it."""
    index = random.Random(7).randrange(6)
    world = OwningWorld(RealWorld(), index, 6)
    drawn = [world.new_id() for _ in range(50)]
    assert {find_owner(each, 6) for each in drawn} == {index}
    assert len(set(drawn)) == 50
    assert all(uuid.UUID(each).version == 4 and str(uuid.UUID(each)) == each for each in drawn)
