"""Compose files: each deployment on one machine, and an example of its `.env`."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.emit.artefact import Artefact, join_lines, render_template
from codegen.emit.deploy import env_example, servers, wiring
from codegen.emit.deploy.image import (
    RESULTS,
    format_dockerfile_path,
    format_image_name,
    format_load_dockerfile_path,
)
from codegen.emit.deploy.wiring import NodeSetting, Peer, Port, to_dns_name
from codegen.emit.deploy.yaml_text import dump_scalar
from codegen.emit.postgres.postgres_files import name_series
from codegen.language.deployments import Deployment, Node
from codegen.source.spec import Spec

CPUS = "1.0"
PIDS = 256
BUCKETS_SERVICE = "s3-buckets"
"""The one-shot container that sets up the buckets of nodes."""
MIGRATION_SERVICE = "postgres-schema"
"""The one-shot container that runs the migrations, as the owner of the tables."""
HEALTHY = "service_healthy"
CA_FILE = "ca.crt"
COMPLETED = "service_completed_successfully"


@dataclass(frozen=True)
class Replica:
    """One container of a node: its difference from the other replicas."""

    name: str
    environment: dict[str, str]
    published: list[str]
    volume: str = ""
    """The volume of its persistent files; empty where it has none."""


@dataclass(frozen=True)
class ComposeNode:
    """One node as the template needs it; values are YAML, and an empty one is passed through from `.env`."""

    name: str
    command: str
    environment: dict[str, str]
    test: str
    memory_mib: int
    depends_on: dict[str, str]
    """The services to wait for, and the condition of each."""
    secrets: list[str]
    is_open: bool
    replicas: list[Replica]

    @property
    def is_replicated(self) -> bool:
        return len(self.replicas) > 1


@dataclass(frozen=True)
class LoadService:
    """The service of the load generator as the template needs it."""

    image: str
    dockerfile: str
    entrypoint: str
    """JSON, which is a subset of YAML."""
    depends_on: list[str]
    secrets: list[str]
    results: str
    cpus: str = "2.0"
    memory_mib: int = 1024


def emit(spec: Spec) -> Iterator[Artefact]:
    """Emit `compose.yaml` and `.env.example` for each deployment that can run in containers."""
    for name, deployment in spec.deployments.root.items():
        if not deployment.in_containers:
            continue
        folder = f"generated/{spec.name}/deploy/{name}"
        yield Artefact(f"{folder}/compose.yaml", _render_compose(spec, name, deployment))
        yield Artefact(f"{folder}/.env.example", env_example.render_env_example(spec, name, deployment))


def _render_compose(spec: Spec, name: str, deployment: Deployment) -> str:
    nodes = [_build_node(spec, deployment, each) for each in deployment.processes]
    return render_template(
        "deploy/compose.yaml.j2",
        spec,
        about=join_lines(f"{deployment.title}: {deployment.doc}"),
        project=f"{spec.name}-{name}",
        image=format_image_name(spec),
        dockerfile=format_dockerfile_path(spec),
        user=wiring.USER_ID,
        certificates=wiring.format_certificate_folder(spec, name),
        cpus=CPUS,
        pids=PIDS,
        stop_after_s=wiring.compute_stop_timeout_s(spec),
        timing=deployment.healthcheck,
        nodes=nodes,
        buckets=_list_bucket_settings(spec, deployment) if "s3" in spec.servers_of(deployment) else None,
        buckets_name=BUCKETS_SERVICE,
        schema=_list_migration_settings(spec, deployment)
        if "postgres" in spec.servers_of(deployment)
        else None,
        schema_name=MIGRATION_SERVICE,
        schema_series=name_series(spec, deployment),
        servers=[servers.SERVERS[each] for each in spec.servers_of(deployment)],
        data=wiring.DATA,
        volumes=[
            *(servers.SERVERS[each].host for each in spec.servers_of(deployment)),
            *(replica.volume for node in nodes for replica in node.replicas if replica.volume),
            *(["results"] if deployment.load_generator else []),
        ],
        account=servers.name_account(spec),
        secrets=sorted({secret for node in nodes for secret in node.secrets}),
        load=_build_load_service(spec, deployment),
    )


def _build_load_service(spec: Spec, deployment: Deployment) -> LoadService | None:
    if deployment.load_generator is None:
        return None
    peers = [
        peer for name in deployment.ingress for peer in wiring.list_replicas(name, deployment.nodes[name])
    ]
    values = {
        "{addresses}": ",".join(_format_address(spec, deployment, peer) for peer in peers),
        "{ca_file}": f"/run/secrets/{CA_FILE}",
        "{results}": RESULTS,
    }
    command = deployment.load_generator.command
    words = [
        functools.reduce(lambda text, each: text.replace(*each), values.items(), _escape_dollars(word))
        for word in shlex.split(command)
    ]
    return LoadService(
        image=f"{spec.name}-load:{spec.system.version}",
        dockerfile=format_load_dockerfile_path(spec),
        entrypoint=json.dumps(words),
        depends_on=[
            wiring.format_host(peer)
            for name, node in deployment.processes.items()
            for peer in wiring.list_replicas(name, node)
        ],
        secrets=[CA_FILE] if "{ca_file}" in command else [],
        results=RESULTS,
    )


def _build_node(spec: Spec, deployment: Deployment, name: str) -> ComposeNode:
    node = deployment.nodes[name]
    rows = list(wiring.list_settings(spec, deployment, name))
    values = {row.name: _format_value(spec, deployment, name, row) for row in rows if row.kind != "index"}
    used = [row.value for row in rows if row.kind == "server"]
    return ComposeNode(
        name=to_dns_name(name),
        command=dump_scalar(_escape_dollars(wiring.format_command(deployment, name))),
        environment=values,
        test=json.dumps(["CMD-SHELL", _escape_dollars(wiring.format_healthcheck(deployment, name))]),
        memory_mib=wiring.compute_memory_mib(spec, deployment, name),
        depends_on={
            **{servers.SERVERS[each].host: HEALTHY for each in used},
            **({MIGRATION_SERVICE: COMPLETED} if "postgres" in used else {}),
            **({BUCKETS_SERVICE: COMPLETED} if "s3" in used else {}),
            **dict.fromkeys(_list_dependencies(deployment, name), HEALTHY),
        },
        secrets=sorted({wiring.name_credential_file(name, node, row) for row in rows if row.kind == "file"}),
        is_open=name in deployment.ingress,
        replicas=[
            Replica(
                wiring.format_host(peer),
                {row.name: dump_scalar(str(peer.ordinal or 0)) for row in rows if row.kind == "index"},
                _format_published_ports(spec, deployment, peer),
                f"{wiring.format_host(peer)}-data" if wiring.has_data_volume(spec, deployment, name) else "",
            )
            for peer in wiring.list_replicas(name, node)
        ],
    )


def _list_bucket_settings(spec: Spec, deployment: Deployment) -> dict[str, str]:
    """List the settings of the container that sets up buckets, with the same values as for nodes."""
    names = servers.list_bucket_variables(spec)
    return {
        row.name: _format_value(spec, deployment, name, row)
        for name in deployment.processes
        for row in wiring.list_settings(spec, deployment, name)
        if row.name in names
    }


def _list_migration_settings(spec: Spec, deployment: Deployment) -> dict[str, str]:
    """List the settings of the container that migrates: each database URL for nodes and for the owner."""
    found: dict[str, str] = {}
    for name in deployment.processes:
        for row in wiring.list_settings(spec, deployment, name):
            if row.kind == "server" and row.value == "postgres":
                found[row.name] = _format_value(spec, deployment, name, row)
                found[f"OWNER_{row.name}"] = dump_scalar(servers.format_owner_url(spec, row.value))
    return found


def _format_value(spec: Spec, deployment: Deployment, name: str, row: NodeSetting) -> str:
    """Format the value of a variable as YAML."""
    outside = wiring.name_compose_variable(name, deployment.nodes[name], row)
    match row.kind:
        case "peers":
            return dump_scalar(",".join(_format_address(spec, deployment, peer) for peer in row.peers))
        case "url":
            return dump_scalar(",".join(_format_url(spec, deployment, peer) for peer in row.peers))
        case "file":
            return dump_scalar(
                f"/run/secrets/{wiring.name_credential_file(name, deployment.nodes[name], row)}"
            )
        case "server":
            return dump_scalar(servers.format_url(spec, row.value))
        case "fixed":
            return dump_scalar(_escape_dollars(row.value))
        case "required":
            return dump_scalar(f"${{{outside}:?must be set}}")
        case "open" if outside == row.name:
            return ""
        case _:
            return dump_scalar(_format_default(outside, row.value))


def _format_address(spec: Spec, deployment: Deployment, peer: Peer) -> str:
    ports = {each.name: each for each in wiring.list_ports(spec, peer.node, deployment.nodes[peer.node])}
    port = _format_container_port(deployment, peer, ports[wiring.PORT_NAMES["listen"]])
    return f"{wiring.format_host(peer)}:{port}"


def _format_url(spec: Spec, deployment: Deployment, peer: Peer) -> str:
    number = wiring.find_port(spec, peer.node, deployment.nodes[peer.node], "http")
    return f"{wiring.choose_scheme(spec)}://{wiring.format_host(peer)}:{number}"


def _format_published_ports(spec: Spec, deployment: Deployment, peer: Peer) -> list[str]:
    """Format `address:host port:container port` of each port of an ingress node."""
    found = [each for each in wiring.assign_published_ports(spec, deployment) if each.peer == peer]
    outside = [_format_default(each.variable, str(each.port)) for each in found]
    inside = [_format_container_port(deployment, peer, each.inside) for each in found]
    return [dump_scalar(f"127.0.0.1:{outer}:{inner}") for outer, inner in zip(outside, inside, strict=True)]


def _format_container_port(deployment: Deployment, peer: Peer, port: Port) -> str:
    """Format the container port: fixed where other nodes are configured with it, else from its variable."""
    words = [word for word, name in wiring.PORT_NAMES.items() if name == port.name]
    fixed = any(wiring.is_upstream(deployment, peer.node, word) for word in words)
    return str(port.number) if fixed else _format_default(port.variable, str(port.number))


def _list_dependencies(deployment: Deployment, name: str) -> list[str]:
    """List the hosts that must be healthy first: all upstreams except those in a cycle with this node."""
    return [
        wiring.format_host(peer)
        for target in dict.fromkeys(_list_called_nodes(deployment.nodes[name]))
        if name not in _find_reachable(deployment, target)
        for peer in wiring.list_replicas(target, deployment.nodes[target])
    ]


def _find_reachable(deployment: Deployment, name: str) -> set[str]:
    """Find every node that a node reaches through upstreams, itself included."""
    found = {name}
    open_ends = [name]
    while open_ends:
        new = set(_list_called_nodes(deployment.nodes[open_ends.pop()])) - found
        found |= new
        open_ends += sorted(new)
    return found


def _list_called_nodes(node: Node) -> list[str]:
    """List the nodes that a node calls."""
    return [*node.upstreams.values(), *node.finds.values()]


def _format_default(variable: str, default: str) -> str:
    """Format a default that `.env` may override; a default with compose syntax in it cannot be overridden."""
    return _escape_dollars(default) if set("${}") & set(default) else f"${{{variable}:-{default}}}"


def _escape_dollars(text: str) -> str:
    return text.replace("$", "$$")
