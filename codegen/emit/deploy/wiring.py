"""How the nodes of a deployment find each other, prove themselves and are told their settings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from codegen.emit.python.settings import text_of
from codegen.language.deployments import Deployment, Node
from codegen.language.environment import EngineRole, Variable
from codegen.source.spec import Spec

USER_ID = 10001
"""User and group of every process."""
STOP_MARGIN_S = 5
"""What a node gets on top of its own grace period before it is killed."""
BASE_MEMORY_MIB = 256
RECORD_BYTES = 2048
"""What a retained record weighs in memory, for the memory limit of a node that keeps records."""

Kind = Literal["fixed", "default", "open", "required", "index", "peers", "url", "file", "server"]
"""Where a value comes from.

fixed: the same for everyone; default: may be overridden; open: may be set; required: must be set;
index: the place of a replica in its order; peers: addresses of other nodes; url: where another node takes
HTTP requests; file: proof of identity; server: where a server is that the deployment brings along.
"""
PORT_NAMES: dict[Literal["listen", "http"], str] = {"listen": "api", "http": "http"}
FILES: dict[EngineRole, str] = {"tls_certificate": "crt", "tls_key": "key", "tls_authority": "ca"}
DATA = "/data"
"""Where a node keeps files that stay."""
TOKENS: tuple[EngineRole, ...] = ("caller_token", "accepted_tokens")


class Peer(NamedTuple):
    """A node to be reached: all its replicas behind one name, or a single one by its place."""

    node: str
    place: int | None = None


class Port(NamedTuple):
    """Where a node takes calls, unless its variable says otherwise: `api` for gRPC, `http` for HTTP."""

    name: str
    variable: str
    number: int


class Published(NamedTuple):
    """A port that clients outside may use, the variable that moves it, and the port inside."""

    peer: Peer
    variable: str
    port: int
    inside: Port


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable of one node and where its value comes from."""

    name: str
    variable: Variable
    kind: Kind
    value: str = ""
    peers: tuple[Peer, ...] = ()


def settings(spec: Spec, deployment: Deployment, node_name: str) -> Iterator[Setting]:
    """What a node is told of what it reads.

    Tokens are left out where certificates prove callers, and so is what a replica had better find out itself.
    """
    node = deployment.nodes[node_name]
    for name, variable in spec.variables_of(deployment, node_name).items():
        found_out = variable.default_from is not None and node.replicas > 1
        if not found_out and variable not in _idle_tokens(spec, node):
            yield _setting(deployment, node_name, node, name, variable)


def _idle_tokens(spec: Spec, node: Node) -> list[Variable]:
    """Token variables that a node has no use for, because those it deals with have certificates."""
    roles = set(TOKENS) if uses_certificates(spec) else set()
    for principal, ref in spec.permissions:
        row = spec.methods[ref]
        proof = spec.callers.principals[principal].proof
        # Who calls over HTTP is likely to have no certificate, whatever else it could prove itself by.
        by_token = proof == ("token",) or ("token" in proof and node.http and row.method.route)
        if by_token and row.component in node.hosts:
            roles.discard("accepted_tokens")
    return [row for row in spec.environment.variables.values() if row.role in roles]


def _setting(deployment: Deployment, node_name: str, node: Node, name: str, variable: Variable) -> Setting:
    routing = deployment.routing
    default = node.defaults.get(name, variable.default)
    if variable.role in FILES:
        return Setting(name, variable, "file", FILES[variable.role])
    for server, url in deployment.servers.items():
        if name == url:
            return Setting(name, variable, "server", server)
    if name in node.upstreams:
        return Setting(name, variable, "peers", peers=_upstreams(deployment, node.upstreams[name], variable))
    if name in node.finds:
        return Setting(name, variable, "url", peers=(Peer(node.finds[name]),))
    if routing and name == routing.order:
        return Setting(name, variable, "peers", peers=tuple(replicas(node_name, node)))
    if routing and name == routing.index:
        return Setting(name, variable, "index")
    if default is not None:
        if variable.type == "data_path":
            return Setting(name, variable, "fixed", f"{DATA}/{default}")
        wired = any(
            name == listener.port and is_held(deployment, node_name, word)
            for word, listener in node.listeners.items()
        )
        fixed = variable.type == "constant" or wired
        return Setting(name, variable, "fixed" if fixed else "default", text_of(default) or "")
    return Setting(name, variable, "required" if variable.required else "open")


def _upstreams(deployment: Deployment, target: str, variable: Variable) -> tuple[Peer, ...]:
    if variable.type == "addresses":
        return tuple(replicas(target, deployment.nodes[target]))
    return (Peer(target),)


def replicas(node_name: str, node: Node) -> list[Peer]:
    """Each process of a node."""
    places = range(node.replicas) if node.replicas > 1 else [None]
    return [Peer(node_name, place) for place in places]


def is_held(deployment: Deployment, node_name: str, word: Literal["listen", "http"]) -> bool:
    """Whether another node holds the address at which this one takes calls, or requests."""
    return any(
        node_name in (node.upstreams if word == "listen" else node.finds).values()
        for node in deployment.nodes.values()
    )


def keeps_data(spec: Spec, deployment: Deployment, node_name: str) -> bool:
    """Whether a node keeps files that stay."""
    return any(row.type == "data_path" for row in spec.variables_of(deployment, node_name).values())


def certificate_folder(spec: Spec, deployment: str) -> str:
    """Where `nox -s certs` puts the certificates of a deployment, from the folder of its compose file."""
    return f"../../../../certs/{spec.name}.{deployment}"


def uses_certificates(spec: Spec) -> bool:
    return any(row.role in FILES for row in spec.environment.variables.values())


def identity(node_name: str, node: Node) -> str:
    """Whose certificate a node holds: that of the one component it hosts, or one of its own."""
    return node.hosts[0] if len(node.hosts) == 1 else node_name


def proof_file(node_name: str, node: Node, setting: Setting) -> str:
    """The name of the file that holds a node's certificate, its key or the authority behind all of them."""
    return "ca.crt" if setting.value == "ca" else f"{identity(node_name, node)}.{setting.value}"


def outside_name(node_name: str, node: Node, setting: Setting) -> str:
    """What a variable is called where the variables of all nodes lie together: a token has an owner there."""
    mine = setting.variable.role == "caller_token"
    return f"{identity(node_name, node).upper()}_{setting.name}" if mine else setting.name


def dns(name: str) -> str:
    """A name of the spec as a host name."""
    return name.replace("_", "-")


def host(peer: Peer) -> str:
    """The host name of a process, or of all that a node has."""
    return dns(peer.node) if peer.place is None else f"{dns(peer.node)}-{peer.place}"


def port(spec: Spec, node_name: str, node: Node, word: Literal["listen", "http"] = "listen") -> int:
    """The port on which a node takes gRPC calls, or HTTP requests, unless it is told otherwise."""
    for each in ports(spec, node_name, node):
        if each.name == PORT_NAMES[word]:
            return each.number
    raise ValueError(f"{node_name} has no {PORT_NAMES[word]} port, so nobody could be told where it is")


def scheme(spec: Spec) -> str:
    """How a URL begins at which a node takes requests."""
    return "https" if uses_certificates(spec) else "http"


def ports(spec: Spec, node_name: str, node: Node) -> list[Port]:
    """Every port of a node."""
    found: list[Port] = []
    for word, listener in node.listeners.items():
        default = node.defaults.get(listener.port, spec.environment.variables[listener.port].default)
        if default is None and listener.optional:
            continue
        if default is None:
            raise ValueError(f"{node_name} has no default port, so nobody could be told where it listens")
        found.append(Port(PORT_NAMES[word], listener.port, int(default)))
    return found


def published(spec: Spec, deployment: Deployment) -> list[Published]:
    """The ports outside of each replica of an ingress node: its own ones, or the next that are free."""
    found: list[Published] = []
    for name in deployment.ingress:
        node = deployment.nodes[name]
        for inside in ports(spec, name, node):
            for peer in replicas(name, node):
                wanted = inside.number + (peer.place or 0)
                while any(wanted == each.port for each in found):
                    wanted += 1
                own = inside.variable if peer.place is None else f"{inside.variable}_{peer.place}"
                found.append(Published(peer, own, wanted, inside))
    return found


def in_containers(deployment: Deployment) -> bool:
    """Whether its nodes can be reached from outside of where they run, as those in containers must be."""
    return deployment.in_containers


def healthcheck(deployment: Deployment, node_name: str) -> str:
    """The shell command that checks a node from within."""
    check = deployment.nodes[node_name].healthcheck
    if check is None:
        raise ValueError(f"{node_name} has no healthcheck, so nobody could tell how it is")
    return (
        f"python -m scripts.healthcheck --mode {check.mode} --target {check.target}"
        f" --timeout-ms {deployment.healthcheck.timeout_ms} --service {node_name}"
    )


def command(deployment: Deployment, node_name: str) -> str:
    """The one command that starts a node."""
    return deployment.command.replace("{node}", node_name)


def seconds(duration: str) -> int:
    """`500ms`, `5s` or `2m` in whole seconds, rounded up."""
    factors = {"ms": 0.001, "s": 1, "m": 60}
    unit = duration.lstrip("0123456789")
    return max(1, math.ceil(int(duration.removesuffix(unit)) * factors[unit]))


def stop_after_s(spec: Spec) -> int:
    """How long a node may take to stop."""
    return math.ceil(spec.system.policies.shutdown.grace_ms / 1000) + STOP_MARGIN_S


def memory_mib(spec: Spec, deployment: Deployment, node_name: str) -> int:
    """A memory limit under which a node can keep all that its retention policies let it keep."""
    read = spec.variables_of(deployment, node_name)
    defaults = deployment.nodes[node_name].defaults
    kept = 0
    for policy in spec.system.policies.retention.values():
        if policy.bound in read:
            bound = int(defaults.get(policy.bound, read[policy.bound].default or 0))
            kept += bound * (RECORD_BYTES if policy.unit == "records" else 1)
    return BASE_MEMORY_MIB + math.ceil(kept / 2**20 / 64) * 64


def calls_between(spec: Spec, deployment: Deployment) -> list[tuple[str, str]]:
    """Pairs of nodes of which the first may call the second, from the caller matrix."""
    found = [
        (caller, callee)
        for principal, ref in spec.permissions
        for caller in _nodes_of(deployment, principal)
        if (wanted := spec.methods[ref].component) not in deployment.nodes[caller].hosts
        for callee in _nodes_of(deployment, wanted)
    ]
    return list(dict.fromkeys(found))


def open_nodes(spec: Spec, deployment: Deployment) -> list[str]:
    """Ingress nodes with something that a principal outside the deployment may call."""
    inside = {component for node in deployment.nodes.values() for component in node.hosts}
    wanted = {spec.methods[ref].component for principal, ref in spec.permissions if principal not in inside}
    return [name for name in deployment.ingress if wanted & set(deployment.nodes[name].hosts)]


def _nodes_of(deployment: Deployment, component: str) -> list[str]:
    return [name for name, node in deployment.processes.items() if component in node.hosts]


def one_line(text: str) -> str:
    """Text for a comment."""
    return " ".join(text.split())
