"""Reference tables about the endpoints of deployments and about variables."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.deploy import wiring
from codegen.emit.docs.markdown import code, codes, format_table, prose
from codegen.emit.python.deployments import list_served_services
from codegen.emit.python.settings import format_value
from codegen.language.deployments import Deployment, Listen, Node
from codegen.language.environment import Variable, VariableRule
from codegen.source.spec import Spec


def render_endpoints(spec: Spec, deployment: Deployment) -> str:
    """Render the table of the nodes of a deployment: names, services and ports."""
    headers = ("DNS name", "Service", "Bind host", "Port", "Inbound RPC", "HTTP", "From outside")
    return format_table(headers, (_format_endpoint(spec, deployment, name) for name in deployment.processes))


def _format_endpoint(spec: Spec, deployment: Deployment, name: str) -> tuple[str, ...]:
    node = deployment.nodes[name]
    hosts = _format_range([wiring.format_host(peer) for peer in wiring.list_replicas(name, node)])
    ports = {
        each.name: f"{code(each.number) if each.number else 'any'} ({code(each.variable)})"
        for each in wiring.list_ports(spec, name, node)
    }
    http = (
        f"{code(node.http.host)} {ports.get('http') or _format_optional_port(node.http)}" if node.http else ""
    )
    published = [row for row in wiring.assign_published_ports(spec, deployment) if row.peer.node == name]
    # An ephemeral port is unknown beforehand, so it is left out. Each port has a range of its own.
    by_port: dict[str, list[str]] = {}
    for row in published:
        if row.inside.number:
            by_port.setdefault(row.inside.variable, []).append(f"127.0.0.1:{row.port}")
    outside = ", ".join(map(_format_range, by_port.values()))
    services = (
        codes([qualify_service(spec, each) for each in _list_reachable_services(spec, deployment, node)])
        or "none"
    )
    if node.listen is None:
        return hosts, services, "none", "none", "no", http, outside
    return hosts, services, code(node.listen.host), ports["api"], "yes", http, outside


def _list_reachable_services(spec: Spec, deployment: Deployment, node: Node) -> list[str]:
    """List the services that can be called at a node: all over gRPC, those with routes over HTTP."""
    if node.listen is not None:
        return list_served_services(spec, deployment, node)
    routed = {row.service_name for row in spec.methods.values() if row.method.route is not None}
    hosted = spec.services_of(deployment, node) if node.http is not None else []
    return [service for service in hosted if service in routed]


def _format_optional_port(listener: Listen) -> str:
    """Format a port that is open only where its variable is set."""
    return f"where {code(listener.port)} is set"


def _format_range(values: list[str]) -> str:
    return codes(values) if len(values) < 3 else f"{code(values[0])} to {code(values[-1])}"


def qualify_service(spec: Spec, service: str) -> str:
    """Format the full name of a service on the wire."""
    return f"{spec.system.protos[spec.services.services[service].proto].package}.{service}"


def render_variables(spec: Spec) -> str:
    """Render the table of variables: type, default, bounds, readers and meaning."""
    headers = ("Variable", "Type", "Default", "Bounds", "Read by", "Meaning")
    return format_table(
        headers, (_format_variable(spec, name, row) for name, row in spec.environment.variables.items())
    )


def _format_variable(spec: Spec, name: str, row: Variable) -> tuple[str, ...]:
    readers = "everyone" if row.read_by == "everyone" else ", ".join(row.read_by)
    kind = f"{row.type}, {row.unit}" if row.unit else row.type
    return (
        code(name),
        kind,
        _format_default(spec, name, row),
        "; ".join(_list_bounds(row)),
        readers,
        prose(row.doc),
    )


def _format_default(spec: Spec, name: str, row: Variable) -> str:
    if row.required:
        return "**required**"
    if row.default_from:
        return f"the {row.default_from}" if row.default_from == "hostname" else "a name of the process"
    default = "none" if row.default is None else code(format_value(row.default))
    others = [
        f"{code(node.defaults[name])} in {deployment}"
        for deployment, _, _, node in spec.nodes()
        if name in node.defaults
    ]
    return "; ".join([default, *dict.fromkeys(others)])


def _list_bounds(row: Variable) -> Iterator[str]:
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


def render_rules(spec: Spec) -> list[str]:
    """Render the rules between variables, a sentence each."""
    return [f"{_format_rule(row)}: {prose(row.doc).rstrip('.')}." for row in spec.environment.rules]


def _format_rule(row: VariableRule) -> str:
    parts = []
    if row.greater_than:
        parts.append(f"{code(row.variable)} is greater than {code(row.greater_than)}")
    if row.less_than_count_of:
        parts.append(f"{code(row.variable)} is less than the count of {code(row.less_than_count_of)}")
    if row.together:
        parts.append(f"{codes(row.together)} are set together or not at all")
    return " and ".join(parts)
