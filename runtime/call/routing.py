"""Which node owns a key, how a client finds it, and ids that a node draws so that it owns them."""

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
"""So many that each node is as likely to be the first, however many there are."""
_AHEAD = 16
"""Ids that are drawn at a time: most of what one costs alone is fetching the code that draws it."""


def owner(key: str, nodes: int) -> int:
    """The index of the owner: the first 8 bytes of the key's SHA-256, big-endian, modulo the node count."""
    found: int = _first_8_bytes(sha256(key.encode()).digest())[0]
    return found % nodes


class Router:
    """Chooses the node for each call of one client. Nodes keep the order that their deployment gave them.

    The turns begin at random: clients that make one call each would all have the first node do it.
    """

    def __init__(self, routing: Routing | None, world: World) -> None:
        self._routing = routing
        self._turns = itertools.count(int(world.uniform(0, _FIRST_TURNS)))

    def choose(self, method: Method, request: object, addresses: Sequence[str]) -> str:
        """The owner of the request's key; without a key, the next in turn.

        What every node answers for itself goes to the first, because the page tokens of one node mean nothing
        to another. So does everything in a deployment without owners.
        """
        routing = self._routing
        if routing is None or len(addresses) == 1 or method.path in routing.per_node:
            return addresses[0]
        field = routing.keys.get(method.path)
        key = getattr(request, field) if field is not None else ""
        turn = owner(key, len(addresses)) if key else next(self._turns) % len(addresses)
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
        """A random id whose last two digits are counted on until this node owns it."""
        drawn = self._drawn
        while not drawn:
            candidates = [self._world.new_id() for _ in range(_AHEAD)]
            drawn += [owned for each in candidates if (owned := self._counted_on(each)) is not None]
        return drawn.pop()

    def new_keys(self, count: int) -> list[str]:
        """The same for keys that begin with the time."""
        found: list[str] = []
        while len(found) < count:
            drawn = self._world.new_keys(count - len(found))
            found += [owned for each in drawn if (owned := self._counted_on(each)) is not None]
        return found

    def _counted_on(self, drawn: str) -> str | None:
        """The next id that this node owns; None in the rare case that no ending of it is."""
        index, nodes = self._index, self._nodes
        stem, tail = drawn[:-2].encode(), int(drawn[-2:], 16)
        for place in range(tail, tail + 256):
            key = stem + _ENDINGS[place]
            if _first_8_bytes(sha256(key).digest())[0] % nodes == index:
                return key.decode()
        return None
