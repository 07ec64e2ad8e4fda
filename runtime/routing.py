"""Which node owns a key, how a client finds it, and ids that a node draws so that it owns them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

from runtime.tables import Method, Routing
from runtime.world import World


def owner(key: str, nodes: int) -> int:
    """The index of the owner: the first 8 bytes of the key's SHA-256, big-endian, modulo the node count."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % nodes


class Router:
    """Chooses the node for each call of one client. Nodes keep the order that their deployment gave them."""

    def __init__(self, routing: Routing | None) -> None:
        self._routing = routing
        self._turns = itertools.count()

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
        self.now_ms = world.now_ms
        self.monotonic = world.monotonic
        self.sleep = world.sleep
        self.uniform = world.uniform

    def new_id(self) -> str:
        """A random id whose last digits are counted on until this node owns it."""
        return self._owned(self._world.new_id())

    def new_keys(self, count: int) -> list[str]:
        """The same for keys that begin with the time."""
        return [self._owned(each) for each in self._world.new_keys(count)]

    def _owned(self, drawn: str) -> str:
        stem, tail = drawn[:-4], int(drawn[-4:], 16)
        while owner(drawn, self._nodes) != self._index:
            tail = (tail + 1) & 0xFFFF
            drawn = f"{stem}{tail:04x}"
        return drawn
