"""Routing by owner: the node that owns a key, how a client finds it, and ids that a node owns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from hashlib import sha256
from struct import Struct

from runtime.model.system import Method, Routing
from runtime.world import World

_first_8_bytes = Struct(">Q").unpack_from
_ENDINGS = tuple(b"%02x" % each for each in range(256)) * 2
_FIRST_TURNS = 2**32
"""So many that each node is equally likely to be the first, however many there are."""
_AHEAD = 16
"""Ids that are drawn at a time: most of what one costs alone is fetching the code that draws it."""


def find_owner(key: str, nodes: int) -> int:
    """Find the index of the owner: the first 8 bytes of the SHA-256, big-endian, modulo the node count."""
    found: int = _first_8_bytes(sha256(key.encode()).digest())[0]
    return found % nodes


class Router:
    """Choose the node for each call of one client. Nodes have the order that their deployment gives them.

    The round robin begins at random: else clients that make one call each would all call the first node.
    """

    def __init__(self, routing: Routing | None, world: World) -> None:
        self._routing = routing
        self._turns = itertools.count(int(world.uniform(0, _FIRST_TURNS)))

    def choose(self, method: Method, request: object, addresses: Sequence[str]) -> str:
        """Return the owner of the request's key; without a key, the next node (round robin).

        Methods that every node answers for itself go to the first, because the page tokens of one node mean
        nothing to another. So does every call in a deployment without owners.
        """
        routing = self._routing
        if routing is None or len(addresses) == 1 or method.path in routing.per_node:
            return addresses[0]
        field = routing.keys.get(method.path)
        key = getattr(request, field) if field is not None else ""
        turn = find_owner(key, len(addresses)) if key else next(self._turns) % len(addresses)
        return addresses[turn]


class OwningWorld:
    """A world whose new ids all belong to one node."""

    def __init__(self, world: World, index: int, nodes: int) -> None:
        self._world = world
        self._index = index
        self._nodes = nodes
        self._drawn: list[str] = []
        self.now_ms = world.now_ms
        self.monotonic = world.monotonic
        self.sleep = world.sleep
        self.uniform = world.uniform

    def new_id(self) -> str:
        """Return a random id whose last two digits are incremented until this node owns it."""
        drawn = self._drawn
        while not drawn:
            candidates = [self._world.new_id() for _ in range(_AHEAD)]
            drawn += [owned for each in candidates if (owned := self._make_owned(each)) is not None]
        return drawn.pop()

    def new_keys(self, count: int) -> list[str]:
        """Return new time-ordered keys that this node owns."""
        found: list[str] = []
        while len(found) < count:
            drawn = self._world.new_keys(count - len(found))
            found += [owned for each in drawn if (owned := self._make_owned(each)) is not None]
        return found

    def _make_owned(self, drawn: str) -> str | None:
        """Return the next id that this node owns; None in the rare case that it owns none with this stem."""
        index, nodes = self._index, self._nodes
        stem, tail = drawn[:-2].encode(), int(drawn[-2:], 16)
        for place in range(tail, tail + 256):
            key = stem + _ENDINGS[place]
            if _first_8_bytes(sha256(key).digest())[0] % nodes == index:
                return key.decode()
        return None
