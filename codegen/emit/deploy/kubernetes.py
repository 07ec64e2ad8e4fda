"""Kubernetes manifests: each deployment as a kustomize base, with network policies from the caller matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.deploy import network_policies, wiring, yaml_text
from codegen.emit.deploy.image import format_image_name
from codegen.emit.deploy.pod import build_labels, build_pod_template, build_selector
from codegen.emit.deploy.wiring import to_dns_name
from codegen.language.deployments import Deployment
from codegen.source.spec import Spec

POLICIES = "network-policies.yaml"
DATA_SIZE = "1Gi"
"""The default size of a node's volume for persistent files."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """Emit a folder `kubernetes` for each deployment that can run in containers."""
    for name, deployment in spec.deployments.root.items():
        if not deployment.in_containers:
            continue
        files = {
            "kustomization.yaml": [_build_kustomization(spec, name, deployment)],
            "namespace.yaml": [_build_namespace(spec, name)],
            **{
                f"{to_dns_name(node)}.yaml": list(_build_workload(spec, name, deployment, node))
                for node in deployment.processes
            },
            POLICIES: list(network_policies.build_policies(spec, name, deployment)),
        }
        for file, documents in files.items():
            text = render_template("deploy/manifest.yaml.j2", spec, body=yaml_text.dump_documents(documents))
            yield Artefact(f"generated/{spec.name}/deploy/{name}/kubernetes/{file}", text)


def _build_kustomization(spec: Spec, name: str, deployment: Deployment) -> dict[str, Any]:
    image, tag = format_image_name(spec).split(":")
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": to_dns_name(f"{spec.name}-{name}"),
        "resources": [
            "namespace.yaml",
            *(f"{to_dns_name(node)}.yaml" for node in deployment.processes),
            POLICIES,
        ],
        "images": [{"name": image, "newTag": tag}],
    }


def _build_namespace(spec: Spec, name: str) -> dict[str, Any]:
    """Build a namespace that enforces the restricted pod security standard."""
    namespace_labels = {
        "app.kubernetes.io/part-of": to_dns_name(spec.name),
        "pod-security.kubernetes.io/enforce": "restricted",
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": to_dns_name(f"{spec.name}-{name}"), "labels": namespace_labels},
    }


def _build_workload(
    spec: Spec, name: str, deployment: Deployment, node_name: str
) -> Iterator[dict[str, Any]]:
    """Build the workload of a node, its volume, and its service if it listens."""
    node = deployment.nodes[node_name]
    pods = build_selector(spec, name, node_name)
    meta = {"name": to_dns_name(node_name), "labels": build_labels(spec, name, node_name)}
    if ports := wiring.list_ports(spec, node_name, node):
        exposed: dict[str, Any] = {
            "selector": pods,
            "ports": [{"name": each.name, "port": each.number, "targetPort": each.name} for each in ports],
        }
        # Headless: replicas are resolved one by one, by name or by a client that balances its calls.
        head = {"clusterIP": "None"} if node.replicas > 1 else {}
        yield {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": head | exposed}
    if wiring.has_data_volume(spec, deployment, node_name):
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**meta, "name": f"{to_dns_name(node_name)}-data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": DATA_SIZE}}},
        }
    common = {
        "replicas": node.replicas,
        "selector": {"matchLabels": pods},
        "template": build_pod_template(spec, name, deployment, node_name),
    }
    if deployment.routing and node.replicas > 1:
        identity = {"serviceName": to_dns_name(node_name), "podManagementPolicy": "Parallel"}
        yield {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": identity | common}
    else:
        # A node may be the only owner of its data, so the old pod stops before the new one starts, unless
        # servers have the data.
        alone = node.replicas == 1 and not spec.servers_of(deployment)
        strategy = {"strategy": {"type": "Recreate"}} if alone else {}
        yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": strategy | common}
