"""Kills at random moments: processes of a stack, and the server that they share."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from runtime.embedded.server import EmbeddedServer
from tests.support.orchestrator.stack import Node


class Fate:
    """Kills at random moments, and brings back to life. `name` is that of the server among victims."""

    def __init__(self, nodes: Sequence[Node], name: str, server: EmbeddedServer) -> None:
        self.killed: Counter[str] = Counter()
        self._nodes = nodes
        self._name = name
        self._server = server

    def strike_all(self, victims: Sequence[str], chance: random.Random) -> None:
        """A kill of each, in an order that chance decides."""
        for kind in chance.sample(victims, len(victims)):
            self.strike(kind, chance)

    def strike(self, kind: str, chance: random.Random) -> None:
        """One kill. Whoever is dead comes back after a while, and maybe not before the next kill."""
        time.sleep(chance.uniform(0, 0.6))
        self.killed[kind] += 1
        if kind == self._name:
            self._server.stop(immediate=True)
            time.sleep(chance.choice((0, 0.5, 1.5)))
            self._server.spawn()
            self._server.wait()
        else:
            alive = [node for node in self._nodes if node.name == kind and node.running]
            if alive:
                chance.choice(alive).kill()
        for node in self._nodes:
            if not node.running and chance.random() < 0.7:
                node.begin()

    def revive(self) -> None:
        """Brings everybody back."""
        for node in self._nodes:
            if not node.running:
                node.begin()
            node.wait()
