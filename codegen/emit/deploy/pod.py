"""Pod template of a node: one container with the least privileges that it needs."""

from __future__ import annotations

import math
import shlex
from typing import Any

from codegen.emit.deploy import wiring
from codegen.emit.deploy.image import format_image_name
from codegen.emit.deploy.servers import SERVERS
from codegen.emit.deploy.wiring import NodeSetting, Peer, to_dns_name
from codegen.language.deployments import Deployment, Timing
from codegen.language.environment import Variable
from codegen.source.spec import Spec

CREDENTIALS = "/run/secrets/proof"
CREDENTIAL_FILES = {"crt": "tls.crt", "key": "tls.key", "ca": "ca.crt"}
"""The keys of a TLS secret, as Kubernetes and its certificate issuers name them."""
ORDINAL_FIELD = "metadata.labels['apps.kubernetes.io/pod-index']"


def build_selector(spec: Spec, deployment_name: str, node_name: str) -> dict[str, str]:
    """Build the label selector of the pods of a node."""
    return {
        "app.kubernetes.io/name": to_dns_name(node_name),
        "app.kubernetes.io/instance": to_dns_name(f"{spec.name}-{deployment_name}"),
    }


def build_labels(spec: Spec, deployment_name: str, node_name: str) -> dict[str, str]:
    return build_selector(spec, deployment_name, node_name) | {
        "app.kubernetes.io/part-of": to_dns_name(spec.name)
    }


def build_pod_template(spec: Spec, name: str, deployment: Deployment, node_name: str) -> dict[str, Any]:
    node = deployment.nodes[node_name]
    rows = list(wiring.list_settings(spec, deployment, node_name))
    has_credentials = any(row.kind == "file" for row in rows)
    container: dict[str, Any] = {
        "name": to_dns_name(node_name),
        "image": format_image_name(spec),
        "command": shlex.split(wiring.format_command(deployment, node_name)),
        "env": [found for row in rows if (found := _build_variable(spec, deployment, node_name, row))],
    }
    if ports := wiring.list_ports(spec, node_name, node):
        container["ports"] = [{"name": each.name, "containerPort": each.number} for each in ports]
    container |= _build_probes(deployment, node_name, "HTTPS" if has_credentials else "HTTP")
    memory = wiring.compute_memory_mib(spec, deployment, node_name)
    container["resources"] = {
        "requests": {"cpu": "100m", "memory": f"{wiring.BASE_MEMORY_MIB}Mi"},
        "limits": {"cpu": "1", "memory": f"{memory}Mi"},
    }
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    container["volumeMounts"] = [{"name": "tmp", "mountPath": "/tmp"}]
    has_data = wiring.has_data_volume(spec, deployment, node_name)
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}]
    if has_data:
        container["volumeMounts"].append({"name": "data", "mountPath": wiring.DATA})
        volumes.append(
            {"name": "data", "persistentVolumeClaim": {"claimName": f"{to_dns_name(node_name)}-data"}}
        )
    if has_credentials:
        container["volumeMounts"].append({"name": "proof", "mountPath": CREDENTIALS, "readOnly": True})
        secret = {
            "secretName": f"{to_dns_name(wiring.choose_identity(node_name, node))}-tls",
            "defaultMode": 0o440,
        }
        volumes.append({"name": "proof", "secret": secret})
    return {
        "metadata": {"labels": build_labels(spec, name, node_name)},
        "spec": {
            "automountServiceAccountToken": False,
            # Service links would set variables such as <SERVICE>_PORT, which collide with those of nodes.
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": wiring.compute_stop_timeout_s(spec),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": wiring.USER_ID,
                "runAsGroup": wiring.USER_ID,
                "fsGroup": wiring.USER_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": volumes,
        },
    }


def _build_variable(
    spec: Spec, deployment: Deployment, node_name: str, row: NodeSetting
) -> dict[str, Any] | None:
    """Build an entry of `env`; None for an optional variable without a value."""
    match row.kind:
        case "fixed" | "default":
            return {"name": row.name, "value": row.value}
        case "peers":
            return {
                "name": row.name,
                "value": ",".join(_format_address(spec, deployment, peer) for peer in row.peers),
            }
        case "url":
            return {
                "name": row.name,
                "value": ",".join(_format_url(spec, deployment, each) for each in row.peers),
            }
        case "file":
            return {"name": row.name, "value": f"{CREDENTIALS}/{CREDENTIAL_FILES[row.value]}"}
        case "server":
            # The operator of the server provides the secret: one for all nodes.
            reference: dict[str, Any] = {"name": row.value, "key": row.name}
            if SERVERS[row.value].has_default_endpoint and not row.variable.required:
                reference["optional"] = True
            return {"name": row.name, "valueFrom": {"secretKeyRef": reference}}
        case "index" if deployment.nodes[node_name].replicas > 1:
            return {"name": row.name, "valueFrom": {"fieldRef": {"fieldPath": ORDINAL_FIELD}}}
        case "index":
            return {"name": row.name, "value": "0"}
        case "required" | "open" if _is_secret(row.variable):
            secret = {
                "name": f"{to_dns_name(node_name)}-settings",
                "key": row.name,
                "optional": not row.variable.required,
            }
            return {"name": row.name, "valueFrom": {"secretKeyRef": secret}}
        case _:
            return None


def _is_secret(variable: Variable) -> bool:
    """Whether the value comes from a secret of the operator."""
    return variable.required or variable.type == "secret" or variable.role in wiring.TOKENS


def _format_address(spec: Spec, deployment: Deployment, peer: Peer) -> str:
    """Format the address of a service, or of one pod behind it."""
    host = (
        wiring.format_host(peer)
        if peer.ordinal is None
        else f"{wiring.format_host(peer)}.{to_dns_name(peer.node)}"
    )
    return f"{host}:{wiring.find_port(spec, peer.node, deployment.nodes[peer.node])}"


def _format_url(spec: Spec, deployment: Deployment, peer: Peer) -> str:
    number = wiring.find_port(spec, peer.node, deployment.nodes[peer.node], "http")
    return f"{wiring.choose_scheme(spec)}://{wiring.format_host(peer)}:{number}"


def _build_probes(deployment: Deployment, node_name: str, scheme: str) -> dict[str, Any]:
    """Build the probes of a node.

    A listener is probed itself: over HTTP for liveness and readiness separately, else by a TCP connection. A
    node without one is ready while its dependencies can be reached; it has no liveness probe, because a
    restart would lose its work in flight.
    """
    node = deployment.nodes[node_name]
    timing = deployment.healthcheck
    timing_fields = {
        "periodSeconds": wiring.parse_seconds(timing.interval),
        "timeoutSeconds": wiring.parse_seconds(timing.timeout),
        "failureThreshold": timing.retries,
    }
    if not node.listeners:
        check: dict[str, Any] = {
            "exec": {"command": ["sh", "-c", wiring.format_healthcheck(deployment, node_name)]}
        }
        return {"readinessProbe": check | timing_fields}
    alive = ready = {"tcpSocket": {"port": "api"}}
    if node.http:
        alive, ready = (
            {"httpGet": {"path": path, "port": "http", "scheme": scheme}} for path in ("/healthz", "/readyz")
        )
    return {
        "startupProbe": alive | timing_fields | {"failureThreshold": _count_startup_failures(timing)},
        "readinessProbe": ready | timing_fields,
        "livenessProbe": alive | timing_fields,
    }


def _count_startup_failures(timing: Timing) -> int:
    """Count the failed checks until a start counts as failed: the start period and the retries after it."""
    return (
        math.ceil(wiring.parse_seconds(timing.start_period) / wiring.parse_seconds(timing.interval))
        + timing.retries
    )
