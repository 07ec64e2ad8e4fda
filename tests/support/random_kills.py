"""Random kills of the nodes of a stack and of their server."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from runtime.launch.embedded.server import EmbeddedServer
from tests.support.orchestrator.stack import Node


class RandomKills:
    """Kills and restarts at random moments. `name` is that of the server among the victims."""

    def __init__(self, nodes: Sequence[Node], name: str, server: EmbeddedServer) -> None:
        self.killed: Counter[str] = Counter()
        self._nodes = nodes
        self._name = name
        self._server = server

    def kill_all(self, victims: Sequence[str], chance: random.Random) -> None:
        """Kill every victim, in a random order."""
        for kind in chance.sample(victims, len(victims)):
            self.kill_one(kind, chance)

    def kill_one(self, kind: str, chance: random.Random) -> None:
        """Kill one victim, and restart some of the dead nodes; others stay dead until a later kill."""
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
        """Restart all dead nodes, and wait for all."""
        for node in self._nodes:
            if not node.running:
                node.begin()
            node.wait()
