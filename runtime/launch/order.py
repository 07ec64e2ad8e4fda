"""In which order the processes of a deployment are ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runtime.launch.process import NodeProcess
from runtime.model.system import Deployment


def stop_order(deployment: Deployment, processes: Iterable[NodeProcess]) -> Iterator[list[NodeProcess]]:
    """Waves of processes, so that none is stopped while one that calls it still drains."""
    left = list(processes)
    while left:
        called = {
            target
            for name in {each.planned.node for each in left}
            for target in (
                *deployment.nodes[name].upstreams.values(),
                *deployment.nodes[name].finds.values(),
            )
            if target != name
        }
        # Where nodes call each other in a circle nobody is first, and they all go together.
        wave = [each for each in left if each.planned.node not in called] or left
        yield wave
        left = [each for each in left if each not in wave]
