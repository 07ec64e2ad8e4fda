"""Replicas: the number of processes of each node, where it differs from the spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from runtime.launch.errors import LaunchError
from runtime.model.system import Deployment
from runtime.node.systems import UnknownName, find_deployment, suggest_name


class WrongReplicas(LaunchError):
    """Invalid numbers of replicas."""

    exit_code = 2


def with_replicas(deployment: Deployment, counts: Mapping[str, int]) -> Deployment:
    """Return the deployment with other numbers of replicas; a node with 0 is left out.

    A node that is started on demand is started with the others where it has a number.
    """
    for name in counts:
        if name not in deployment.nodes:
            raise WrongReplicas(f"There is no node '{name}'.{suggest_name(name, deployment.nodes)}")
    nodes = {
        name: replace(
            node, replicas=counts.get(name, node.replicas), on_demand=node.on_demand and name not in counts
        )
        for name, node in deployment.nodes.items()
        if counts.get(name, node.replicas) > 0
    }
    for name in deployment.ingress:
        if name not in nodes:
            raise WrongReplicas(f"Clients call {name}, so it cannot be left out.")
    for node in nodes.values():
        for target in (*node.upstreams.values(), *node.finds.values()):
            if target not in nodes:
                raise WrongReplicas(f"{node.name} calls {target}, so it cannot be left out.")
    return replace(deployment, nodes=nodes)


def expand_replica_options(arguments: Sequence[str]) -> list[str]:
    """Replace `--<node>s 2` in a command line by `--replicas <node>=2`, for every node."""
    plurals = {f"--{name.replace('_', '-')}s": name for name in _find_nodes(arguments)}
    found: list[str] = []
    left = iter(arguments)
    for each in left:
        word, equals, count = each.partition("=")
        if word in plurals:
            found += ["--replicas", f"{plurals[word]}={count if equals else next(left, '')}"]
        else:
            found.append(each)
    return found


def _find_nodes(arguments: Sequence[str]) -> list[str]:
    for each in arguments:
        try:
            _, deployment = find_deployment(each)
        except UnknownName:
            continue
        return list(deployment.nodes)
    return []
