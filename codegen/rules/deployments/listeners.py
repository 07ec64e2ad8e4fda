"""Rules of deployments.yaml about anonymous callers and certificates."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.callers import Principal
from codegen.language.deployments import Deployment, Node
from codegen.rules.lookup import list_external_principals
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec


@rule(
    "E731",
    "Someone calls without proof who is no principal, is a component, or could come from another machine.",
    wrong="http: {host: 0.0.0.0, port: SHOP_PORT, anonymous: client}",
    right="http: {host: 127.0.0.1, port: SHOP_PORT, anonymous: client}",
)
def check_anonymous_listeners(spec: Spec) -> Iterator[Finding]:
    for deployment_name, _, node_name, node in spec.nodes():
        for word, listener in node.listeners.items():
            if (principal := listener.anonymous) is None:
                continue
            path = (deployment_name, "nodes", node_name, word)
            place, known = spec.place("deployments", *path, "anonymous"), spec.callers.principals
            subject = f"'{node_name}' takes calls without proof from"
            yield from report_unknown(spec, place, subject, principal, known, "who is no principal")
            if not listener.is_local:
                message = f"{subject} {principal} on {listener.host}, where anyone could call."
                yield Finding(place, message, "Listen on 127.0.0.1, or let callers prove themselves.")
            elif principal in spec.services.components:
                message = f"{subject} {principal}, which is a component, so anyone could pass for it."
                yield Finding(place, message, "Name a principal that is no component.")


@rule(
    "E739",
    "All clients of a node come without proof, which is refused where there are certificates.",
    wrong="guest: {proof: [anonymous], without_tokens: true}  # and no other principal may call the shop",
    right="guest: {proof: [token]}",
    needs=("callers", "services", "environment", "deployments"),
)
def check_ingress_callable(spec: Spec) -> Iterator[Finding]:
    found: set[str] = set()
    for name, deployment in spec.deployments.root.items():
        for node_name in deployment.ingress:
            node = deployment.nodes.get(node_name)
            if node is None or not _has_certificate_always(spec, deployment, node_name):
                continue
            callers = _find_external_callers(spec, deployment, node)
            at_listeners = {each.anonymous for each in node.listeners.values()}
            if at_listeners & set(callers) or not all(map(_is_refused, callers.values())):
                continue
            # Only one principal can be anonymous.
            for principal in callers.keys() - found:
                found.add(principal)
                place = spec.place("callers", "principals", principal, "without_tokens", key=True)
                message = (
                    f"No client can call '{node_name}' of '{name}': only {principal} may, without proof "
                    "where there is no certificate, and there is always one."
                )
                hint = "Remove 'without_tokens', or let someone call who has a token or a certificate."
                yield Finding(place, message, hint)


@rule(
    "E740",
    "A listener for HTTP names a carrier of gRPC.",
    wrong="http: {port: SHOP_HTTP_PORT, carrier: direct}",
    right="listen: {port: SHOP_PORT, carrier: direct}",
)
def check_http_has_no_carrier(spec: Spec) -> Iterator[Finding]:
    for deployment_name, _, node_name, node in spec.nodes():
        if node.http is not None and node.http.carrier is not None:
            path = (deployment_name, "nodes", node_name, "http", "carrier")
            message = f"'{node_name}' names a carrier for HTTP requests, and carriers are for gRPC."
            yield Finding(spec.place("deployments", *path, key=True), message, "Say it under 'listen'.")


@rule(
    "E741",
    "A listener of grpcio requests certificates from all callers or from none, and its callers need both.",
    wrong="listen: {port: SHOP_PORT}  # customers are anonymous, and the till has a certificate",
    right="listen: {port: SHOP_PORT, carrier: direct}",
    needs=("callers", "services", "environment", "deployments"),
)
def check_grpcio_certificates(spec: Spec) -> Iterator[Finding]:
    for name, deployment, node_name, node in spec.nodes():
        if node.listen is None or deployment.carrier_at(node_name) != "grpcio":
            continue
        if not _has_certificate_always(spec, deployment, node_name):
            continue
        callers = _find_callers(spec, deployment, node)
        if not any("anonymous" in each.proof and not each.without_tokens for each in callers.values()):
            continue
        for principal in sorted(
            principal for principal, each in callers.items() if each.proof == ("certificate",)
        ):
            message = (
                f"'{node_name}' lets callers in without proof, so grpcio asks none of them for a "
                f"certificate, and {principal} has no other proof."
            )
            hint = "Say 'carrier: direct' at the listener, or let the principal prove itself by a token."
            place = spec.place("deployments", name, "nodes", node_name, "listen")
            yield Finding(place, message, hint)


def _find_external_callers(spec: Spec, deployment: Deployment, node: Node) -> dict[str, Principal]:
    """Find the principals outside of a deployment that may call a node."""
    external = set(list_external_principals(spec))
    return {name: each for name, each in _find_callers(spec, deployment, node).items() if name in external}


def _find_callers(spec: Spec, deployment: Deployment, node: Node) -> dict[str, Principal]:
    """Find the principals that may call a node."""
    offered = spec.services_of(deployment, node)
    allowed = {
        principal
        for principal, ref in spec.permissions
        if ref in spec.methods and spec.methods[ref].service_name in offered
    }
    return {name: each for name, each in spec.callers.principals.items() if name in allowed}


def _is_refused(principal: Principal) -> bool:
    """Whether a principal is refused wherever callers could have certificates."""
    return principal.proof == ("anonymous",) and principal.without_tokens


def _has_certificate_always(spec: Spec, deployment: Deployment, node_name: str) -> bool:
    """Whether a node has a certificate by itself, or by the files that are generated for containers."""
    for name, row in spec.variables_of(deployment, node_name).items():
        if row.role == "tls_certificate":
            preset = row.default is not None or name in deployment.nodes[node_name].defaults
            return row.required or preset or deployment.in_containers
    return False
