"""Compose overlay with a replicated Redis: one master, its replicas, and sentinels for the failover."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, join_lines, render_template
from codegen.emit.deploy import servers, wiring
from codegen.language.deployments import Deployment
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    """Emit `compose.sentinel.yaml` beside the compose file of each deployment with a Redis."""
    for name, deployment in spec.deployments.root.items():
        if deployment.in_containers and servers.has_redis(spec, deployment):
            path = f"generated/{spec.name}/deploy/{name}/compose.sentinel.yaml"
            yield Artefact(path, _render_compose(spec, deployment))


def _render_compose(spec: Spec, deployment: Deployment) -> str:
    variable = spec.servers_of(deployment)["redis"]
    return render_template(
        "deploy/compose.sentinel.yaml.j2",
        spec,
        about=join_lines(f"{deployment.title}: {deployment.doc}"),
        server=servers.SERVERS["redis"],
        group=servers.name_account(spec),
        port=servers.SENTINEL_PORT,
        network=servers.SENTINEL_NETWORK,
        sentinels=servers.SENTINELS,
        quorum=servers.SENTINELS // 2 + 1,
        replicas=servers.REPLICAS,
        timing=deployment.healthcheck,
        variable=variable,
        url=servers.format_sentinel_url(spec),
        nodes=[
            wiring.format_host(peer)
            for name, node in deployment.nodes.items()
            if variable in spec.variables_of(deployment, name)
            for peer in wiring.list_replicas(name, node)
        ],
    )
