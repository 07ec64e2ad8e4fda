"""Rules of deployments.yaml about how the nodes of a deployment find each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.diagnostics import Place
from codegen.language.deployments import Deployment, Node
from codegen.language.environment import Variable
from codegen.rules.callers.required_calls import list_required_calls
from codegen.rules.lookup import find_public_methods
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

_FILES = ("callers", "services", "deployments")


@rule(
    "E704",
    "A node calls a node that does not exist, or itself.",
    wrong="upstreams: {JOB_SERVICE_ADDR: jobs}",
    right="upstreams: {JOB_SERVICE_ADDR: job}",
    spreads=True,
)
def check_upstreams_exist(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        others = [name for name in deployment.nodes if name != node_name]
        for variable, target in node.upstreams.items():
            place = spec.place("deployments", *path, "upstreams", variable)
            if target == node_name:
                yield Finding(place, f"The node '{node_name}' calls itself over the network.", "Remove it.")
            else:
                yield from report_unknown(
                    spec, place, f"The node '{node_name}' calls", target, others, "which is no other node"
                )


@rule(
    "E705",
    "The address of another node is in a variable that is no address, or that the node does not read.",
    wrong="desk: {upstreams: {JOB_PORT: job}}",
    right="desk: {upstreams: {JOB_SERVICE_ADDR: job}}",
    spreads=True,
)
def check_addresses(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        for variable, target in node.upstreams.items():
            place = spec.place("deployments", *path, "upstreams", variable, key=True)
            subject = f"The node '{node_name}' has the address of '{target}' in"
            yield from check_variable(spec, place, subject, variable, "address", deployment, node_name)


@rule(
    "E706",
    "A node listens on a variable that is no port, or that the node does not read.",
    wrong="desk: {listen: {port: JOB_SERVICE_ADDR}}",
    right="desk: {listen: {port: DESK_PORT}}",
    spreads=True,
)
def check_ports(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        for word, listener in node.listeners.items():
            place = spec.place("deployments", *path, word, "port")
            subject = f"The node '{node_name}' has its port in"
            yield from check_variable(spec, place, subject, listener.port, "port", deployment, node_name)


def check_variable(
    spec: Spec, place: Place, subject: str, name: str, type_: str, deployment: Deployment, node: str
) -> Iterator[Finding]:
    """Check that a variable exists, is of a type, and that a node reads it."""
    row = spec.environment.variables.get(name)
    matching = [each for each, row in spec.environment.variables.items() if row.type == type_]
    if row is None:
        yield from report_unknown(spec, place, subject, name, matching)
    elif row.type != type_:
        hint = f"Known: {', '.join(matching)}." if matching else ""
        yield Finding(place, f"{subject} {name}, which is of type {row.type}.", hint)
    elif name not in spec.variables_of(deployment, node) and _has_known_readers(spec, row):
        hint = f"Add '{node}' to 'read_by' of {name} in environment.yaml."
        yield Finding(place, f"{subject} {name}, which it does not read.", hint)


def _has_known_readers(spec: Spec, row: Variable) -> bool:
    known = {*spec.services.components, *(node for _, _, node, _ in spec.nodes())}
    return row.read_by == "everyone" or known.issuperset(row.read_by)


@rule(
    "E707",
    "A node has the address of a node where it may call nothing.",
    wrong="job: {upstreams: {QUEUE_SERVICE_ADDR: queue}}  # job may call nothing of the queue",
    right="job: {}",
    needs=_FILES,
)
def check_upstreams_used(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        wanted = _find_targets(spec, deployment, node, needed=True)
        for variable, target in node.upstreams.items():
            if target in deployment.nodes and target != node_name and target not in wanted:
                place = spec.place("deployments", *path, "upstreams", variable)
                message = f"The node '{node_name}' has the address of '{target}', where it may call nothing."
                yield Finding(place, message, "Remove it, or permit a call in callers.yaml.")


@rule(
    "E708",
    "A node may call a service of another node and has no way to it.",
    wrong="desk: {upstreams: {}}  # and desk may call JobInternalService",
    right="desk: {upstreams: {JOB_SERVICE_ADDR: job}}",
    needs=_FILES,
    spreads=True,
)
def check_upstreams_complete(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        for target, ref in _find_targets(spec, deployment, node).items():
            place = spec.place("deployments", *path, key=True)
            if deployment.transport == "in_process":
                if target in deployment.ingress:
                    # It calls there as an external client does, with credentials of its own.
                    continue
                message = f"The node '{node_name}' may call {ref}, but in process it cannot reach '{target}'."
                yield Finding(place, message, "Host both on one node, or say 'transport: grpc'.")
            elif target not in node.upstreams.values():
                message = f"The node '{node_name}' may call {ref} on '{target}', but has no address of it."
                hint = f"Add 'upstreams: {{<variable>: {target}}}' with a variable of type address."
                yield Finding(place, message, hint)


def _find_targets(spec: Spec, deployment: Deployment, node: Node, *, needed: bool = False) -> dict[str, str]:
    """Find the other nodes that a node may call (or needs to), each with one of the methods."""
    calls = list(spec.permissions)
    calls += [(need.caller, need.ref) for need in list_required_calls(spec)] if needed else []
    targets: dict[str, str] = {}
    for caller, ref in calls:
        server = spec.methods[ref].component if ref in spec.methods else ""
        route = spec.methods[ref].method.route if ref in spec.methods else None
        if route and (route.body or route.answer):
            continue  # Content goes over HTTP, to a URL.
        if caller in node.hosts and server and server not in node.hosts:
            for name, other in deployment.nodes.items():
                if server in other.hosts:
                    targets.setdefault(name, ref)
    return targets


@rule(
    "E709",
    "A node has something to serve, but does not listen.",
    wrong="queue: {hosts: [queue]}",
    right="queue: {hosts: [queue], listen: {port: QUEUE_PORT}}",
    needs=_FILES,
    spreads=True,
)
def check_nodes_listen(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        served = _list_served_services(spec, deployment, node)
        if node.on_demand:
            continue  # It is assembled in the process of its caller, and called there.
        if served and node.listen is None and not _has_routes(spec, node, served):
            message = f"The node '{node_name}' serves {served[0]}, but does not listen."
            hint = "Add 'listen: {port: …}' with a variable of type port."
            yield Finding(spec.place("deployments", *path, key=True), message, hint)


@rule(
    "E710",
    "A node listens, but has nothing to serve.",
    wrong="worker: {hosts: [worker], listen: {port: WORKER_PORT}}  # a worker serves nothing",
    right="worker: {hosts: [worker]}",
    needs=_FILES,
)
def check_listeners_used(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        if node.listen and not _list_served_services(spec, deployment, node):
            message = f"The node '{node_name}' listens, but has nothing to serve."
            yield Finding(spec.place("deployments", *path, "listen", key=True), message, "Remove 'listen'.")


def _has_routes(spec: Spec, node: Node, services: list[str]) -> bool:
    """Whether all methods of some services can be called over HTTP."""
    rows = [row for row in spec.methods.values() if row.service_name in services]
    return node.http is not None and all(row.method.route for row in rows)


def _list_served_services(spec: Spec, deployment: Deployment, node: Node) -> list[str]:
    """List the services of a node that are called from outside of it."""
    offered = spec.services_of(deployment, node)
    if deployment.transport != "in_process":
        return offered
    public = {ref.partition(".")[0] for ref in find_public_methods(spec)}
    return [service for service in offered if service in public]


@rule(
    "E711",
    "Two nodes of a deployment listen on the same port by default, so they could not run on one machine.",
    wrong="JOB_PORT: {type: port, default: 50051}\nQUEUE_PORT: {type: port, default: 50051}",
    right="JOB_PORT: {type: port, default: 50052}\nQUEUE_PORT: {type: port, default: 50053}",
)
def check_ports_unique(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        first: dict[str, tuple[str, str]] = {}
        for node_name, node in deployment.nodes.items():
            for word, listener in node.listeners.items():
                row = spec.environment.variables.get(listener.port)
                port = node.defaults.get(listener.port, str(row.default or "")) if row else ""
                if port and (other := first.setdefault(port, (node_name, word))) != (node_name, word):
                    place = spec.place("deployments", name, "nodes", node_name, word, "port")
                    also = f"and so does '{other[0]}'" if other[0] != node_name else "and it does so twice"
                    message = f"The node '{node_name}' listens on port {port} by default, {also}."
                    yield Finding(place, message, "Give one of them another default port.")


@rule(
    "E712",
    "A healthcheck has a target that is no address, or a variable that the node does not read.",
    wrong='queue: {healthcheck: {mode: tcp, target: "127.0.0.1:${JOB_PORT}"}}',
    right='queue: {healthcheck: {mode: tcp, target: "127.0.0.1:${QUEUE_PORT}"}}',
    needs=("deployments", "environment"),
    spreads=True,
)
def check_healthcheck_targets(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        if node.healthcheck is None:
            continue
        place = spec.place("deployments", *path, "healthcheck", "target")
        target = node.healthcheck.target
        names = re.findall(r"\$\{([^{}]*)\}", target)
        read = [
            name
            for name, row in spec.variables_of(deployment, node_name).items()
            if row.type in ("port", "address")
        ]
        path_form = r"/[^\s${}]*" if node.healthcheck.mode == "http" else ""
        if not re.fullmatch(
            rf"(\$\{{[^{{}}]*\}}|[^\s:${{}}]+:(\$\{{[^{{}}]*\}}|[0-9]{{1,5}})){path_form}", target
        ):
            hint = "Write it as '127.0.0.1:${PORT}' or '${ADDRESS}'."
            if path_form:
                hint = "Write it as '127.0.0.1:${PORT}/path'."
            yield Finding(place, f"'{target}' is no target of a healthcheck.", hint)
            continue
        for name in names:
            subject = f"The healthcheck of '{node_name}' uses"
            yield from report_unknown(spec, place, subject, name, read, "which the node does not read")


@rule(
    "E713",
    "A healthcheck does not look at what its mode is for: worker at an upstream, the others at its own port.",
    wrong='worker: {hosts: [worker], healthcheck: {mode: tcp, target: "127.0.0.1:50051"}}',
    right='worker: {hosts: [worker], healthcheck: {mode: worker, target: "${VAULT_ADDR}"}}',
    needs=("deployments",),
)
def check_healthcheck_modes(spec: Spec) -> Iterator[Finding]:
    for path, _, node_name, node in _iter_nodes(spec):
        if node.healthcheck is None:
            continue
        names = re.findall(r"\$\{([^{}]*)\}", node.healthcheck.target)
        own = node.http if node.healthcheck.mode == "http" else node.listen
        if node.healthcheck.mode == "worker":
            if not set(names) & set(node.upstreams):
                place = spec.place("deployments", *path, "healthcheck", "target")
                message = f"The healthcheck of '{node_name}' does not look at a node that it calls."
                known = " or ".join(f"'${{{name}}}'" for name in node.upstreams)
                yield Finding(place, message, f"Look at {known}." if known else "Say 'mode: tcp'.")
        elif own is None:
            place = spec.place("deployments", *path, "healthcheck", "mode")
            message = f"The healthcheck of '{node_name}' looks for a port, but the node does not listen."
            hint = "Say 'mode: worker' and look at a node that it calls."
            if node.healthcheck.mode == "http":
                message = (
                    f"The healthcheck of '{node_name}' asks over HTTP, but the node takes no HTTP requests."
                )
                hint = "Add 'http: {port: …}' to the node, or say another mode."
            yield Finding(place, message, hint)
        elif names != [own.port]:
            place = spec.place("deployments", *path, "healthcheck", "target")
            message = f"The healthcheck of '{node_name}' does not look at the port that the node listens on."
            yield Finding(place, message, f"Look at '127.0.0.1:${{{own.port}}}'.")


def _iter_nodes(spec: Spec) -> Iterator[tuple[Path, Deployment, str, Node]]:
    """Iterate over all nodes, each with its path, deployment and name."""
    for deployment_name, deployment, node_name, node in spec.nodes():
        yield (deployment_name, "nodes", node_name), deployment, node_name, node
