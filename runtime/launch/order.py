"""The order in which the processes of a deployment are stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runtime.launch.process import NodeProcess
from runtime.model.system import Deployment


def stop_order(deployment: Deployment, processes: Iterable[NodeProcess]) -> Iterator[list[NodeProcess]]:
    """Iterate over waves of processes, so that none is stopped while one that calls it still drains."""
    left = list(processes)
    while left:
        called = {
            target
            for name in {each.plan.node for each in left}
            for target in (
                *deployment.nodes[name].upstreams.values(),
                *deployment.nodes[name].finds.values(),
            )
            if target != name
        }
        # Nodes that call each other in a cycle have no order, and are stopped together.
        wave = [each for each in left if each.plan.node not in called] or left
        yield wave
        left = [each for each in left if each not in wave]
