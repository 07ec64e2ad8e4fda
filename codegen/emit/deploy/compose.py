"""Compose files: each deployment on one machine, and an example of the variables it may be given."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.deploy import env_example, servers, wiring
from codegen.emit.deploy.image import RESULTS, dockerfile_path, image_name, load_dockerfile_path
from codegen.emit.deploy.wiring import Peer, Port, Setting, dns
from codegen.emit.deploy.yaml_text import scalar
from codegen.language.deployments import Deployment, Node
from codegen.source.spec import Spec

CPUS = "1.0"
PIDS = 256
BUCKETS = "s3-buckets"
"""The container that makes the buckets ready which nodes need, and ends."""
SCHEMA = "postgres-schema"
"""The container that brings the tables up to date as their owner, and ends."""
HEALTHY = "service_healthy"
AUTHORITY = "ca.crt"
DONE = "service_completed_successfully"


@dataclass(frozen=True)
class Replica:
    """One container of a node: what sets it apart from the others."""

    name: str
    environment: dict[str, str]
    published: list[str]
    volume: str = ""
    """What keeps its files; empty where it has none."""


@dataclass(frozen=True)
class ComposeNode:
    """One node as the template needs it; values are YAML already, an empty one is passed on if it is set."""

    name: str
    command: str
    environment: dict[str, str]
    test: str
    memory_mib: int
    depends_on: dict[str, str]
    """What has to be there first, and in which condition."""
    secrets: list[str]
    open: bool
    replicas: list[Replica]

    @property
    def replicated(self) -> bool:
        return len(self.replicas) > 1


@dataclass(frozen=True)
class LoadService:
    """The load generator as the template needs it."""

    image: str
    dockerfile: str
    entrypoint: str
    """JSON, which is YAML."""
    depends_on: list[str]
    secrets: list[str]
    results: str
    cpus: str = "2.0"
    memory_mib: int = 1024


def emit(spec: Spec) -> Iterator[Artefact]:
    """A folder for each deployment that can run in containers, with `compose.yaml` and `.env.example`."""
    for name, deployment in spec.deployments.root.items():
        if not wiring.in_containers(deployment):
            continue
        folder = f"generated/{spec.name}/deploy/{name}"
        yield Artefact(f"{folder}/compose.yaml", _compose(spec, name, deployment))
        yield Artefact(f"{folder}/.env.example", env_example.text(spec, name, deployment))


def _compose(spec: Spec, name: str, deployment: Deployment) -> str:
    nodes = [_node(spec, deployment, each) for each in deployment.processes]
    return render_template(
        "deploy/compose.yaml.j2",
        spec,
        about=wiring.one_line(f"{deployment.title}: {deployment.doc}"),
        project=f"{spec.name}-{name}",
        image=image_name(spec),
        dockerfile=dockerfile_path(spec),
        user=wiring.USER_ID,
        certificates=wiring.certificate_folder(spec, name),
        cpus=CPUS,
        pids=PIDS,
        stop_after_s=wiring.stop_after_s(spec),
        timing=deployment.healthcheck,
        nodes=nodes,
        buckets=_buckets(spec, deployment) if "s3" in deployment.servers else None,
        buckets_name=BUCKETS,
        schema=_schema(spec, deployment) if "postgres" in deployment.servers else None,
        schema_name=SCHEMA,
        servers=[servers.SERVERS[each] for each in deployment.servers],
        data=wiring.DATA,
        volumes=[
            *(servers.SERVERS[each].host for each in deployment.servers),
            *(replica.volume for node in nodes for replica in node.replicas if replica.volume),
            *(["results"] if deployment.load_generator else []),
        ],
        account=servers.account(spec),
        secrets=sorted({secret for node in nodes for secret in node.secrets}),
        load=_load_service(spec, deployment),
    )


def _load_service(spec: Spec, deployment: Deployment) -> LoadService | None:
    if deployment.load_generator is None:
        return None
    peers = [peer for name in deployment.ingress for peer in wiring.replicas(name, deployment.nodes[name])]
    values = {
        "{addresses}": ",".join(_address(spec, deployment, peer) for peer in peers),
        "{ca_file}": f"/run/secrets/{AUTHORITY}",
        "{results}": RESULTS,
    }
    command = deployment.load_generator.command
    words = [
        functools.reduce(lambda text, each: text.replace(*each), values.items(), _escaped(word))
        for word in shlex.split(command)
    ]
    return LoadService(
        image=f"{spec.name}-load:{spec.system.version}",
        dockerfile=load_dockerfile_path(spec),
        entrypoint=json.dumps(words),
        depends_on=[
            wiring.host(peer)
            for name, node in deployment.processes.items()
            for peer in wiring.replicas(name, node)
        ],
        secrets=[AUTHORITY] if "{ca_file}" in command else [],
        results=RESULTS,
    )


def _node(spec: Spec, deployment: Deployment, name: str) -> ComposeNode:
    node = deployment.nodes[name]
    rows = list(wiring.settings(spec, deployment, name))
    values = {row.name: _value(spec, deployment, name, row) for row in rows if row.kind != "index"}
    used = [row.value for row in rows if row.kind == "server"]
    return ComposeNode(
        name=dns(name),
        command=scalar(_escaped(wiring.command(deployment, name))),
        environment=values,
        test=json.dumps(["CMD-SHELL", _escaped(wiring.healthcheck(deployment, name))]),
        memory_mib=wiring.memory_mib(spec, deployment, name),
        depends_on={
            **{servers.SERVERS[each].host: HEALTHY for each in used},
            **({SCHEMA: DONE} if "postgres" in used else {}),
            **({BUCKETS: DONE} if "s3" in used else {}),
            **dict.fromkeys(_depends_on(deployment, name), HEALTHY),
        },
        secrets=sorted({wiring.proof_file(name, node, row) for row in rows if row.kind == "file"}),
        open=name in deployment.ingress,
        replicas=[
            Replica(
                wiring.host(peer),
                {row.name: scalar(str(peer.place or 0)) for row in rows if row.kind == "index"},
                _published(spec, deployment, peer),
                f"{wiring.host(peer)}-data" if wiring.keeps_data(spec, deployment, name) else "",
            )
            for peer in wiring.replicas(name, node)
        ],
    )


def _buckets(spec: Spec, deployment: Deployment) -> dict[str, str]:
    """What the container is told that makes buckets ready: what nodes are told of the same."""
    names = servers.set_up_names(spec)
    return {
        row.name: _value(spec, deployment, name, row)
        for name in deployment.processes
        for row in wiring.settings(spec, deployment, name)
        if row.name in names
    }


def _schema(spec: Spec, deployment: Deployment) -> dict[str, str]:
    """What the container is told that migrates: where nodes find each database, and where its owner does."""
    found: dict[str, str] = {}
    for name in deployment.processes:
        for row in wiring.settings(spec, deployment, name):
            if row.kind == "server" and row.value == "postgres":
                found[row.name] = _value(spec, deployment, name, row)
                found[f"OWNER_{row.name}"] = scalar(servers.owner_url(spec, row.value))
    return found


def _value(spec: Spec, deployment: Deployment, name: str, row: Setting) -> str:
    """The value of a variable, as YAML."""
    outside = wiring.outside_name(name, deployment.nodes[name], row)
    match row.kind:
        case "peers":
            return scalar(",".join(_address(spec, deployment, peer) for peer in row.peers))
        case "url":
            return scalar(",".join(_url(spec, deployment, peer) for peer in row.peers))
        case "file":
            return scalar(f"/run/secrets/{wiring.proof_file(name, deployment.nodes[name], row)}")
        case "server":
            return scalar(servers.url(spec, row.value))
        case "fixed":
            return scalar(_escaped(row.value))
        case "required":
            return scalar(f"${{{outside}:?must be set}}")
        case "open" if outside == row.name:
            return ""
        case _:
            return scalar(_overridable(outside, row.value))


def _address(spec: Spec, deployment: Deployment, peer: Peer) -> str:
    ports = {each.name: each for each in wiring.ports(spec, peer.node, deployment.nodes[peer.node])}
    return f"{wiring.host(peer)}:{_inside(deployment, peer, ports[wiring.PORT_NAMES['listen']])}"


def _url(spec: Spec, deployment: Deployment, peer: Peer) -> str:
    number = wiring.port(spec, peer.node, deployment.nodes[peer.node], "http")
    return f"{wiring.scheme(spec)}://{wiring.host(peer)}:{number}"


def _published(spec: Spec, deployment: Deployment, peer: Peer) -> list[str]:
    """`address:outside:inside` of each port of an ingress node."""
    found = [each for each in wiring.published(spec, deployment) if each.peer == peer]
    outside = [_overridable(each.variable, str(each.port)) for each in found]
    inside = [_inside(deployment, peer, each.inside) for each in found]
    return [scalar(f"127.0.0.1:{outer}:{inner}") for outer, inner in zip(outside, inside, strict=True)]


def _inside(deployment: Deployment, peer: Peer, port: Port) -> str:
    """The port inside. Where others hold the address it stays put, else it follows its variable."""
    words = [word for word, name in wiring.PORT_NAMES.items() if name == port.name]
    held = any(wiring.is_held(deployment, peer.node, word) for word in words)
    return str(port.number) if held else _overridable(port.variable, str(port.number))


def _depends_on(deployment: Deployment, name: str) -> list[str]:
    """Hosts that must be healthy first: all upstreams but those that wait for this node in turn."""
    return [
        wiring.host(peer)
        for target in dict.fromkeys(_called(deployment.nodes[name]))
        if name not in _waits_for(deployment, target)
        for peer in wiring.replicas(target, deployment.nodes[target])
    ]


def _waits_for(deployment: Deployment, name: str) -> set[str]:
    """Every node that a node leads to by its upstreams, itself included."""
    found = {name}
    open_ends = [name]
    while open_ends:
        new = set(_called(deployment.nodes[open_ends.pop()])) - found
        found |= new
        open_ends += sorted(new)
    return found


def _called(node: Node) -> list[str]:
    """The nodes that a node calls."""
    return [*node.upstreams.values(), *node.finds.values()]


def _overridable(variable: str, default: str) -> str:
    """A default that `.env` may override; one that compose could misread stays as it is."""
    return _escaped(default) if set("${}") & set(default) else f"${{{variable}:-{default}}}"


def _escaped(text: str) -> str:
    return text.replace("$", "$$")
