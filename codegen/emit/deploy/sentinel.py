"""A variant of compose files: the Redis of a deployment as one of several, watched by sentinels."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.deploy import servers, wiring
from codegen.language.deployments import Deployment
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    """`compose.sentinel.yaml` beside the compose file of each deployment that brings a Redis along."""
    for name, deployment in spec.deployments.root.items():
        if wiring.in_containers(deployment) and servers.has_redis(deployment):
            path = f"generated/{spec.name}/deploy/{name}/compose.sentinel.yaml"
            yield Artefact(path, _text(spec, deployment))


def _text(spec: Spec, deployment: Deployment) -> str:
    variable = deployment.servers["redis"]
    return render_template(
        "deploy/compose.sentinel.yaml.j2",
        spec,
        about=wiring.one_line(f"{deployment.title}: {deployment.doc}"),
        server=servers.SERVERS["redis"],
        group=servers.account(spec),
        port=servers.SENTINEL_PORT,
        network=servers.WATCHED_NETWORK,
        sentinels=servers.SENTINELS,
        quorum=servers.SENTINELS // 2 + 1,
        replicas=servers.REPLICAS,
        timing=deployment.healthcheck,
        variable=variable,
        url=servers.watched_url(spec),
        nodes=[
            wiring.host(peer)
            for name, node in deployment.nodes.items()
            if variable in spec.variables_of(deployment, name)
            for peer in wiring.replicas(name, node)
        ],
    )
