"""Wiring of a deployment: addresses, credentials and settings of its nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from codegen.emit.python.settings import format_value
from codegen.language.deployments import Deployment, Node
from codegen.language.environment import EngineRole, Variable
from codegen.source.spec import Spec

USER_ID = 10001
"""User and group of every process."""
STOP_MARGIN_S = 5
"""Seconds between the end of a node's shutdown grace and its SIGKILL."""
BASE_MEMORY_MIB = 256
RECORD_BYTES = 2048
"""Estimated memory of a retained record, for the memory limit of a node that retains records."""

SettingKind = Literal["fixed", "default", "open", "required", "index", "peers", "url", "file", "server"]
"""The source of a value.

fixed: the same everywhere; default: may be overridden; open: may be set; required: must be set;
index: the ordinal of a replica; peers: addresses of other nodes; url: the HTTP endpoint of another node;
file: a credential; server: the URL of a server that is part of the deployment.
"""
PORT_NAMES: dict[Literal["listen", "http"], str] = {"listen": "api", "http": "http"}
FILES: dict[EngineRole, str] = {"tls_certificate": "crt", "tls_key": "key", "tls_authority": "ca"}
DATA = "/data"
"""The folder of a node's persistent files."""
TOKENS: tuple[EngineRole, ...] = ("caller_token", "accepted_tokens")


class Peer(NamedTuple):
    """The target of a call: all replicas of a node behind one name, or a single one by its ordinal."""

    node: str
    ordinal: int | None = None


class Port(NamedTuple):
    """A listening port of a node and the variable that overrides it: `api` for gRPC, `http` for HTTP."""

    name: str
    variable: str
    number: int


class PublishedPort(NamedTuple):
    """A host port for clients outside, the variable that overrides it, and the port in the container."""

    peer: Peer
    variable: str
    port: int
    inside: Port


@dataclass(frozen=True, slots=True)
class NodeSetting:
    """One variable of one node and the source of its value."""

    name: str
    variable: Variable
    kind: SettingKind
    value: str = ""
    peers: tuple[Peer, ...] = ()


def list_settings(spec: Spec, deployment: Deployment, node_name: str) -> Iterator[NodeSetting]:
    """List the settings that a deployment gives to a node.

    Tokens are left out where certificates prove callers, and so are values that each replica has to discover
    itself, such as its hostname.
    """
    node = deployment.nodes[node_name]
    for name, variable in spec.variables_of(deployment, node_name).items():
        is_discovered = variable.default_from is not None and node.replicas > 1
        if not is_discovered and variable not in _list_idle_tokens(spec, node):
            yield _build_setting(spec, deployment, node_name, node, name, variable)


def _list_idle_tokens(spec: Spec, node: Node) -> list[Variable]:
    """List the token variables that a node does not need, because its callers have certificates."""
    roles = set(TOKENS) if has_certificates(spec) else set()
    for principal, ref in spec.permissions:
        row = spec.methods[ref]
        proof = spec.callers.principals[principal].proof
        # A caller over HTTP is likely to have a token but no certificate, even where both are accepted.
        by_token = proof == ("token",) or ("token" in proof and node.http and row.method.route)
        if by_token and row.component in node.hosts:
            roles.discard("accepted_tokens")
    return [row for row in spec.environment.variables.values() if row.role in roles]


def _build_setting(
    spec: Spec, deployment: Deployment, node_name: str, node: Node, name: str, variable: Variable
) -> NodeSetting:
    routing = deployment.routing
    default = node.defaults.get(name, variable.default)
    if variable.role in FILES:
        return NodeSetting(name, variable, "file", FILES[variable.role])
    for server, url in spec.servers_of(deployment).items():
        if name == url:
            return NodeSetting(name, variable, "server", server)
    if name in node.upstreams:
        return NodeSetting(
            name, variable, "peers", peers=_list_upstreams(deployment, node.upstreams[name], variable)
        )
    if name in node.finds:
        return NodeSetting(name, variable, "url", peers=(Peer(node.finds[name]),))
    if routing and name == routing.order:
        return NodeSetting(name, variable, "peers", peers=tuple(list_replicas(node_name, node)))
    if routing and name == routing.index:
        return NodeSetting(name, variable, "index")
    if default is not None:
        if variable.type == "data_path":
            return NodeSetting(name, variable, "fixed", f"{DATA}/{default}")
        wired = any(
            name == listener.port and is_upstream(deployment, node_name, word)
            for word, listener in node.listeners.items()
        )
        fixed = variable.type == "constant" or wired
        return NodeSetting(name, variable, "fixed" if fixed else "default", format_value(default) or "")
    return NodeSetting(name, variable, "required" if variable.required else "open")


def _list_upstreams(deployment: Deployment, target: str, variable: Variable) -> tuple[Peer, ...]:
    if variable.type == "addresses":
        return tuple(list_replicas(target, deployment.nodes[target]))
    return (Peer(target),)


def list_replicas(node_name: str, node: Node) -> list[Peer]:
    """List the replicas of a node."""
    ordinals = range(node.replicas) if node.replicas > 1 else [None]
    return [Peer(node_name, ordinal) for ordinal in ordinals]


def is_upstream(deployment: Deployment, node_name: str, word: Literal["listen", "http"]) -> bool:
    """Whether the address of this listener is among the settings of another node."""
    return any(
        node_name in (node.upstreams if word == "listen" else node.finds).values()
        for node in deployment.nodes.values()
    )


def has_data_volume(spec: Spec, deployment: Deployment, node_name: str) -> bool:
    """Whether a node has persistent files."""
    return any(row.type == "data_path" for row in spec.variables_of(deployment, node_name).values())


def format_certificate_folder(spec: Spec, deployment: str) -> str:
    """Format the folder of `nox -s certs` for a deployment, relative to its compose file."""
    return f"../../../../certs/{spec.name}.{deployment}"


def has_certificates(spec: Spec) -> bool:
    return any(row.role in FILES for row in spec.environment.variables.values())


def choose_identity(node_name: str, node: Node) -> str:
    """Choose the subject of a node's certificate: the only component that it hosts, or the node itself."""
    return node.hosts[0] if len(node.hosts) == 1 else node_name


def name_credential_file(node_name: str, node: Node, setting: NodeSetting) -> str:
    """Name the file of a node's certificate, of its key or of the certificate authority."""
    return "ca.crt" if setting.value == "ca" else f"{choose_identity(node_name, node)}.{setting.value}"


def name_compose_variable(node_name: str, node: Node, setting: NodeSetting) -> str:
    """Name a variable in `.env`, which all nodes read: that of a token has its owner as a prefix."""
    mine = setting.variable.role == "caller_token"
    return f"{choose_identity(node_name, node).upper()}_{setting.name}" if mine else setting.name


def to_dns_name(name: str) -> str:
    """Convert a name of the spec to a DNS label."""
    return name.replace("_", "-")


def format_host(peer: Peer) -> str:
    """Format the host name of one replica, or of all replicas of a node."""
    return to_dns_name(peer.node) if peer.ordinal is None else f"{to_dns_name(peer.node)}-{peer.ordinal}"


def find_port(spec: Spec, node_name: str, node: Node, word: Literal["listen", "http"] = "listen") -> int:
    """Find the default port of a node for gRPC calls or for HTTP requests."""
    for each in list_ports(spec, node_name, node):
        if each.name == PORT_NAMES[word]:
            return each.number
    raise ValueError(
        f"{node_name} has no {PORT_NAMES[word]} port, so its address cannot be given to other nodes"
    )


def choose_scheme(spec: Spec) -> str:
    """Choose the scheme of the URLs of nodes."""
    return "https" if has_certificates(spec) else "http"


def list_ports(spec: Spec, node_name: str, node: Node) -> list[Port]:
    """List the ports of a node."""
    found: list[Port] = []
    for word, listener in node.listeners.items():
        default = node.defaults.get(listener.port, spec.environment.variables[listener.port].default)
        if default is None and listener.optional:
            continue
        if default is None:
            raise ValueError(
                f"{node_name} has no default port, so its address cannot be given to other nodes"
            )
        found.append(Port(PORT_NAMES[word], listener.port, int(default)))
    return found


def assign_published_ports(spec: Spec, deployment: Deployment) -> list[PublishedPort]:
    """Assign host ports to the replicas of ingress nodes: the same number as inside, or the next free one."""
    found: list[PublishedPort] = []
    for name in deployment.ingress:
        node = deployment.nodes[name]
        for inside in list_ports(spec, name, node):
            for peer in list_replicas(name, node):
                wanted = inside.number + (peer.ordinal or 0)
                while any(wanted == each.port for each in found):
                    wanted += 1
                own = inside.variable if peer.ordinal is None else f"{inside.variable}_{peer.ordinal}"
                found.append(PublishedPort(peer, own, wanted, inside))
    return found


def format_healthcheck(deployment: Deployment, node_name: str) -> str:
    """Format the shell command that checks a node from inside its container."""
    check = deployment.nodes[node_name].healthcheck
    if check is None:
        raise ValueError(f"{node_name} has no healthcheck, so its health cannot be checked")
    return (
        f"python -m scripts.healthcheck --mode {check.mode} --target {check.target}"
        f" --timeout-ms {deployment.healthcheck.timeout_ms} --service {node_name}"
    )


def format_command(deployment: Deployment, node_name: str) -> str:
    """Format the command that starts a node."""
    return deployment.command.replace("{node}", node_name)


def parse_seconds(duration: str) -> int:
    """Parse `500ms`, `5s` or `2m` into whole seconds, rounded up."""
    factors = {"ms": 0.001, "s": 1, "m": 60}
    unit = duration.lstrip("0123456789")
    return max(1, math.ceil(int(duration.removesuffix(unit)) * factors[unit]))


def compute_stop_timeout_s(spec: Spec) -> int:
    """Compute the time from SIGTERM to SIGKILL of a node."""
    return math.ceil(spec.system.policies.shutdown.grace_ms / 1000) + STOP_MARGIN_S


def compute_memory_mib(spec: Spec, deployment: Deployment, node_name: str) -> int:
    """Compute a memory limit that suffices for all that the retention policies of a node allow."""
    read = spec.variables_of(deployment, node_name)
    defaults = deployment.nodes[node_name].defaults
    retained_bytes = 0
    for policy in spec.system.policies.retention.values():
        if policy.bound in read:
            bound = int(defaults.get(policy.bound, read[policy.bound].default or 0))
            retained_bytes += bound * (RECORD_BYTES if policy.unit == "records" else 1)
    return BASE_MEMORY_MIB + math.ceil(retained_bytes / 2**20 / 64) * 64


def list_node_calls(spec: Spec, deployment: Deployment) -> list[tuple[str, str]]:
    """List the pairs of nodes of which the first may call the second, from the caller matrix."""
    found = [
        (caller, callee)
        for principal, ref in spec.permissions
        for caller in _list_hosting_nodes(deployment, principal)
        if (wanted := spec.methods[ref].component) not in deployment.nodes[caller].hosts
        for callee in _list_hosting_nodes(deployment, wanted)
    ]
    return list(dict.fromkeys(found))


def list_open_nodes(spec: Spec, deployment: Deployment) -> list[str]:
    """List the ingress nodes with a method that a principal outside the deployment may call."""
    inside = {component for node in deployment.nodes.values() for component in node.hosts}
    wanted = {spec.methods[ref].component for principal, ref in spec.permissions if principal not in inside}
    return [name for name in deployment.ingress if wanted & set(deployment.nodes[name].hosts)]


def _list_hosting_nodes(deployment: Deployment, component: str) -> list[str]:
    return [name for name, node in deployment.processes.items() if component in node.hosts]
