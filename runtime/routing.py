"""Which node owns a key, and ids that a node draws so that it owns them."""

from __future__ import annotations

import hashlib

from runtime.world import World


def owner(key: str, nodes: int) -> int:
    """The index of the owner: the first 8 bytes of SHA-256 of the key, big-endian, modulo the number of nodes."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % nodes


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
        while owner(drawn := self._world.new_id(), self._nodes) != self._index:
            pass
        return drawn
