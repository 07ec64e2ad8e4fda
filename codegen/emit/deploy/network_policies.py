"""Network policies: nothing flows, except where the caller matrix lets one node call another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from codegen.emit.deploy import wiring
from codegen.emit.deploy.pod import selector
from codegen.emit.deploy.servers import SERVERS
from codegen.emit.deploy.wiring import dns
from codegen.language.deployments import Deployment
from codegen.source.spec import Spec

NAME_SERVERS = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}


def documents(spec: Spec, name: str, deployment: Deployment) -> Iterator[dict[str, Any]]:
    """The policies of a deployment: deny all, let names be looked up, then a policy for each node."""
    lookups = [{"to": [NAME_SERVERS], "ports": [_port(53, "UDP"), _port(53, "TCP")]}]
    yield _policy("default-deny", {}, {"Ingress": [], "Egress": []})
    yield _policy("allow-dns", {}, {"Egress": lookups})
    for node in deployment.processes:
        flows = {
            "Ingress": _ingress(spec, name, deployment, node),
            "Egress": _egress(spec, name, deployment, node),
        }
        if used := {way: rows for way, rows in flows.items() if rows}:
            yield _policy(f"allow-{dns(node)}", {"matchLabels": selector(spec, name, node)}, used)


def _ingress(spec: Spec, name: str, deployment: Deployment, node: str) -> list[dict[str, Any]]:
    callers = [caller for caller, callee in wiring.calls_between(spec, deployment) if callee == node]
    rows: list[dict[str, Any]] = []
    if callers:
        rows.append({"from": _pods(spec, name, callers), "ports": _ports(spec, deployment, node)})
    if node in wiring.open_nodes(spec, deployment):
        rows.append({"ports": _ports(spec, deployment, node)})
    return rows


def _egress(spec: Spec, name: str, deployment: Deployment, node: str) -> list[dict[str, Any]]:
    """To the nodes that it calls, and to the servers that it reads the address of, wherever they run."""
    calls: list[dict[str, Any]] = [
        {"to": _pods(spec, name, [callee]), "ports": _ports(spec, deployment, callee)}
        for caller, callee in wiring.calls_between(spec, deployment)
        if caller == node
    ]
    kept = [row for row in wiring.settings(spec, deployment, node) if row.kind == "server"]
    servers = [SERVERS[row.value] for row in kept]
    return calls + [
        {"ports": [_port(port, "TCP") for port in (each.port, *each.further_ports)]} for each in servers
    ]


def _pods(spec: Spec, name: str, nodes: Sequence[str]) -> list[dict[str, Any]]:
    return [{"podSelector": {"matchLabels": selector(spec, name, node)}} for node in nodes]


def _ports(spec: Spec, deployment: Deployment, node: str) -> list[dict[str, Any]]:
    return [_port(each.number, "TCP") for each in wiring.ports(spec, node, deployment.nodes[node])]


def _port(number: int, protocol: str) -> dict[str, Any]:
    return {"protocol": protocol, "port": number}


def _policy(name: str, pods: dict[str, Any], flows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """A policy on some pods; a way without rows is closed."""
    rules = {way.lower(): rows for way, rows in flows.items() if rows}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": pods, "policyTypes": list(flows), **rules},
    }
