"""Network policies: deny all traffic, except where the caller matrix permits one node to call another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from codegen.emit.deploy import wiring
from codegen.emit.deploy.pod import build_selector
from codegen.emit.deploy.servers import SERVERS
from codegen.emit.deploy.wiring import to_dns_name
from codegen.language.deployments import Deployment
from codegen.source.spec import Spec

NAME_SERVERS = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}


def build_policies(spec: Spec, name: str, deployment: Deployment) -> Iterator[dict[str, Any]]:
    """Build the policies of a deployment: deny all, allow DNS, then a policy for each node."""
    lookups = [{"to": [NAME_SERVERS], "ports": [_build_port(53, "UDP"), _build_port(53, "TCP")]}]
    yield _build_policy("default-deny", {}, {"Ingress": [], "Egress": []})
    yield _build_policy("allow-dns", {}, {"Egress": lookups})
    for node in deployment.processes:
        flows = {
            "Ingress": _build_ingress(spec, name, deployment, node),
            "Egress": _build_egress(spec, name, deployment, node),
        }
        if used := {direction: rows for direction, rows in flows.items() if rows}:
            yield _build_policy(
                f"allow-{to_dns_name(node)}", {"matchLabels": build_selector(spec, name, node)}, used
            )


def _build_ingress(spec: Spec, name: str, deployment: Deployment, node: str) -> list[dict[str, Any]]:
    callers = [caller for caller, callee in wiring.list_node_calls(spec, deployment) if callee == node]
    rows: list[dict[str, Any]] = []
    if callers:
        rows.append({"from": _select_pods(spec, name, callers), "ports": _list_ports(spec, deployment, node)})
    if node in wiring.list_open_nodes(spec, deployment):
        rows.append({"ports": _list_ports(spec, deployment, node)})
    return rows


def _build_egress(spec: Spec, name: str, deployment: Deployment, node: str) -> list[dict[str, Any]]:
    """Build the egress rules: to the nodes that it calls, and to the ports of its servers at any address."""
    calls: list[dict[str, Any]] = [
        {"to": _select_pods(spec, name, [callee]), "ports": _list_ports(spec, deployment, callee)}
        for caller, callee in wiring.list_node_calls(spec, deployment)
        if caller == node
    ]
    used_servers = [row for row in wiring.list_settings(spec, deployment, node) if row.kind == "server"]
    servers = [SERVERS[row.value] for row in used_servers]
    return calls + [
        {"ports": [_build_port(port, "TCP") for port in (each.port, *each.further_ports)]} for each in servers
    ]


def _select_pods(spec: Spec, name: str, nodes: Sequence[str]) -> list[dict[str, Any]]:
    return [{"podSelector": {"matchLabels": build_selector(spec, name, node)}} for node in nodes]


def _list_ports(spec: Spec, deployment: Deployment, node: str) -> list[dict[str, Any]]:
    return [_build_port(each.number, "TCP") for each in wiring.list_ports(spec, node, deployment.nodes[node])]


def _build_port(number: int, protocol: str) -> dict[str, Any]:
    return {"protocol": protocol, "port": number}


def _build_policy(name: str, pods: dict[str, Any], flows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Build a policy for some pods; a direction without rules is closed."""
    rules = {direction.lower(): rows for direction, rows in flows.items() if rows}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": pods, "policyTypes": list(flows), **rules},
    }
