"""Two tables of the reference: endpoints and variables."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.deploy import wiring
from codegen.emit.docs.markdown import code, codes, prose, table
from codegen.emit.python.deployments import list_served_services
from codegen.emit.python.settings import format_value
from codegen.language.deployments import Deployment, Listen, Node
from codegen.language.environment import Variable, VariableRule
from codegen.source.spec import Spec


def endpoints(spec: Spec, deployment: Deployment) -> str:
    """Where each node of a deployment is found and what it answers."""
    headers = ("DNS name", "Service", "Bind host", "Port", "Inbound RPC", "HTTP", "From outside")
    return table(headers, (_endpoint(spec, deployment, name) for name in deployment.processes))


def _endpoint(spec: Spec, deployment: Deployment, name: str) -> tuple[str, ...]:
    node = deployment.nodes[name]
    hosts = _span([wiring.format_host(peer) for peer in wiring.list_replicas(name, node)])
    ports = {
        each.name: f"{code(each.number) if each.number else 'any'} ({code(each.variable)})"
        for each in wiring.list_ports(spec, name, node)
    }
    http = f"{code(node.http.host)} {ports.get('http') or _unset(node.http)}" if node.http else ""
    published = [row for row in wiring.assign_published_ports(spec, deployment) if row.peer.node == name]
    # A port that is any that is free is nothing to be told beforehand. Each port has a range of its own.
    by_port: dict[str, list[str]] = {}
    for row in published:
        if row.inside.number:
            by_port.setdefault(row.inside.variable, []).append(f"127.0.0.1:{row.port}")
    outside = ", ".join(map(_span, by_port.values()))
    services = codes([full_name(spec, each) for each in _served(spec, deployment, node)]) or "none"
    if node.listen is None:
        return hosts, services, "none", "none", "no", http, outside
    return hosts, services, code(node.listen.host), ports["api"], "yes", http, outside


def _served(spec: Spec, deployment: Deployment, node: Node) -> list[str]:
    """The services that are reached at a node: all over gRPC, those with routes over HTTP."""
    if node.listen is not None:
        return list_served_services(spec, deployment, node)
    routed = {row.service_name for row in spec.methods.values() if row.method.route is not None}
    offered = spec.services_of(deployment, node) if node.http is not None else []
    return [service for service in offered if service in routed]


def _unset(listener: Listen) -> str:
    """A port that is opened only where someone wants it."""
    return f"where {code(listener.port)} is set"


def _span(values: list[str]) -> str:
    return codes(values) if len(values) < 3 else f"{code(values[0])} to {code(values[-1])}"


def full_name(spec: Spec, service: str) -> str:
    """A service as it is called on the wire."""
    return f"{spec.system.protos[spec.services.services[service].proto].package}.{service}"


def variables(spec: Spec) -> str:
    """Every variable: what it may be, who reads it and what it means."""
    headers = ("Variable", "Type", "Default", "Bounds", "Read by", "Meaning")
    return table(headers, (_variable(spec, name, row) for name, row in spec.environment.variables.items()))


def _variable(spec: Spec, name: str, row: Variable) -> tuple[str, ...]:
    readers = "everyone" if row.read_by == "everyone" else ", ".join(row.read_by)
    kind = f"{row.type}, {row.unit}" if row.unit else row.type
    return code(name), kind, _default(spec, name, row), "; ".join(_bounds(row)), readers, prose(row.doc)


def _default(spec: Spec, name: str, row: Variable) -> str:
    if row.required:
        return "**required**"
    if row.default_from:
        return f"the {row.default_from}" if row.default_from == "hostname" else "a name of the process"
    usual = "none" if row.default is None else code(format_value(row.default))
    others = [
        f"{code(node.defaults[name])} in {deployment}"
        for deployment, _, _, node in spec.nodes()
        if name in node.defaults
    ]
    return "; ".join([usual, *dict.fromkeys(others)])


def _bounds(row: Variable) -> Iterator[str]:
    if row.type == "port":
        yield "1 to 65535"
    if row.choices:
        yield codes(row.choices)
    if row.min is not None and row.max is not None:
        yield f"{row.min} to {row.max}"
    elif row.min is not None:
        yield f"at least {row.min}"
    elif row.max is not None:
        yield f"at most {row.max}"
    if row.pattern:
        yield f"matches {code(row.pattern)}"
    if row.clamp:
        yield f"used as {row.clamp.min} to {row.clamp.max}"


def rules(spec: Spec) -> list[str]:
    """What must hold between variables, a sentence each."""
    return [f"{_rule(row)}: {prose(row.doc).rstrip('.')}." for row in spec.environment.rules]


def _rule(row: VariableRule) -> str:
    said = []
    if row.greater_than:
        said.append(f"{code(row.variable)} is greater than {code(row.greater_than)}")
    if row.less_than_count_of:
        said.append(f"{code(row.variable)} is less than the count of {code(row.less_than_count_of)}")
    if row.together:
        said.append(f"{codes(row.together)} are set together or not at all")
    return " and ".join(said)
