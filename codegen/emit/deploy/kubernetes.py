"""Kubernetes: each deployment as a kustomize base, on a network closed to all but the caller matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.deploy import network_policies, wiring, yaml_text
from codegen.emit.deploy.image import image_name
from codegen.emit.deploy.pod import labels, pod_template, selector
from codegen.emit.deploy.wiring import dns
from codegen.language.deployments import Deployment
from codegen.source.spec import Spec

POLICIES = "network-policies.yaml"
DATA_SIZE = "1Gi"
"""What a node gets for files that stay, until somebody gives it more."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """A folder `kubernetes` for each deployment that can run in containers."""
    for name, deployment in spec.deployments.root.items():
        if not wiring.in_containers(deployment):
            continue
        files = {
            "kustomization.yaml": [_kustomization(spec, name, deployment)],
            "namespace.yaml": [_namespace(spec, name)],
            **{
                f"{dns(node)}.yaml": list(_node(spec, name, deployment, node))
                for node in deployment.processes
            },
            POLICIES: list(network_policies.documents(spec, name, deployment)),
        }
        for file, documents in files.items():
            text = render_template("deploy/manifest.yaml.j2", spec, body=yaml_text.documents(documents))
            yield Artefact(f"generated/{spec.name}/deploy/{name}/kubernetes/{file}", text)


def _kustomization(spec: Spec, name: str, deployment: Deployment) -> dict[str, Any]:
    image, tag = image_name(spec).split(":")
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": dns(f"{spec.name}-{name}"),
        "resources": ["namespace.yaml", *(f"{dns(node)}.yaml" for node in deployment.processes), POLICIES],
        "images": [{"name": image, "newTag": tag}],
    }


def _namespace(spec: Spec, name: str) -> dict[str, Any]:
    """A namespace that admits only pods as harmless as ours are."""
    marks = {
        "app.kubernetes.io/part-of": dns(spec.name),
        "pod-security.kubernetes.io/enforce": "restricted",
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": dns(f"{spec.name}-{name}"), "labels": marks},
    }


def _node(spec: Spec, name: str, deployment: Deployment, node_name: str) -> Iterator[dict[str, Any]]:
    """The workload of a node, and the service through which it is found if it listens."""
    node = deployment.nodes[node_name]
    pods = selector(spec, name, node_name)
    meta = {"name": dns(node_name), "labels": labels(spec, name, node_name)}
    if ports := wiring.ports(spec, node_name, node):
        exposed: dict[str, Any] = {
            "selector": pods,
            "ports": [{"name": each.name, "port": each.number, "targetPort": each.name} for each in ports],
        }
        # Replicas are found one by one: by their name, or by a client that spreads its calls.
        head = {"clusterIP": "None"} if node.replicas > 1 else {}
        yield {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": head | exposed}
    if wiring.keeps_data(spec, deployment, node_name):
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**meta, "name": f"{dns(node_name)}-data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": DATA_SIZE}}},
        }
    shared = {
        "replicas": node.replicas,
        "selector": {"matchLabels": pods},
        "template": pod_template(spec, name, deployment, node_name),
    }
    if deployment.routing and node.replicas > 1:
        placed = {"serviceName": dns(node_name), "podManagementPolicy": "Parallel"}
        yield {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": placed | shared}
    else:
        # A node may own its data alone, so the old one goes before the new one comes, unless servers have it.
        alone = node.replicas == 1 and not deployment.servers
        strategy = {"strategy": {"type": "Recreate"}} if alone else {}
        yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": strategy | shared}
