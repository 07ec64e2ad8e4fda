"""The pod of a node: one container that may do no more than its work needs."""

from __future__ import annotations

import math
import shlex
from typing import Any

from codegen.emit.deploy import wiring
from codegen.emit.deploy.image import image_name
from codegen.emit.deploy.servers import SERVERS
from codegen.emit.deploy.wiring import Peer, Setting, dns
from codegen.language.deployments import Deployment, Timing
from codegen.language.environment import Variable
from codegen.source.spec import Spec

PROOF = "/run/secrets/proof"
PROOF_FILES = {"crt": "tls.crt", "key": "tls.key", "ca": "ca.crt"}
"""The keys of a TLS secret, as Kubernetes and its certificate issuers name them."""
PLACE = "metadata.labels['apps.kubernetes.io/pod-index']"


def selector(spec: Spec, deployment_name: str, node_name: str) -> dict[str, str]:
    """What the pods of a node are found by."""
    return {
        "app.kubernetes.io/name": dns(node_name),
        "app.kubernetes.io/instance": dns(f"{spec.name}-{deployment_name}"),
    }


def labels(spec: Spec, deployment_name: str, node_name: str) -> dict[str, str]:
    return selector(spec, deployment_name, node_name) | {"app.kubernetes.io/part-of": dns(spec.name)}


def pod_template(spec: Spec, name: str, deployment: Deployment, node_name: str) -> dict[str, Any]:
    node = deployment.nodes[node_name]
    rows = list(wiring.settings(spec, deployment, node_name))
    proof = any(row.kind == "file" for row in rows)
    container: dict[str, Any] = {
        "name": dns(node_name),
        "image": image_name(spec),
        "command": shlex.split(wiring.command(deployment, node_name)),
        "env": [found for row in rows if (found := _variable(spec, deployment, node_name, row))],
    }
    if ports := wiring.ports(spec, node_name, node):
        container["ports"] = [{"name": each.name, "containerPort": each.number} for each in ports]
    container |= _probes(deployment, node_name, "HTTPS" if proof else "HTTP")
    memory = wiring.memory_mib(spec, deployment, node_name)
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
    keeps_data = wiring.keeps_data(spec, deployment, node_name)
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}]
    if keeps_data:
        container["volumeMounts"].append({"name": "data", "mountPath": wiring.DATA})
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": f"{dns(node_name)}-data"}})
    if proof:
        container["volumeMounts"].append({"name": "proof", "mountPath": PROOF, "readOnly": True})
        secret = {"secretName": f"{dns(wiring.identity(node_name, node))}-tls", "defaultMode": 0o440}
        volumes.append({"name": "proof", "secret": secret})
    return {
        "metadata": {"labels": labels(spec, name, node_name)},
        "spec": {
            "automountServiceAccountToken": False,
            # Links would be variables such as <SERVICE>_PORT, which nodes read for themselves.
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": wiring.stop_after_s(spec),
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


def _variable(spec: Spec, deployment: Deployment, node_name: str, row: Setting) -> dict[str, Any] | None:
    """An entry of `env`; what has neither a value nor a need for one is left out."""
    match row.kind:
        case "fixed" | "default":
            return {"name": row.name, "value": row.value}
        case "peers":
            return {
                "name": row.name,
                "value": ",".join(_address(spec, deployment, peer) for peer in row.peers),
            }
        case "url":
            return {"name": row.name, "value": ",".join(_url(spec, deployment, each) for each in row.peers)}
        case "file":
            return {"name": row.name, "value": f"{PROOF}/{PROOF_FILES[row.value]}"}
        case "server":
            # Whoever runs the server keeps the secret: one for all nodes.
            place: dict[str, Any] = {"name": row.value, "key": row.name}
            if SERVERS[row.value].has_usual_place and not row.variable.required:
                place["optional"] = True
            return {"name": row.name, "valueFrom": {"secretKeyRef": place}}
        case "index" if deployment.nodes[node_name].replicas > 1:
            return {"name": row.name, "valueFrom": {"fieldRef": {"fieldPath": PLACE}}}
        case "index":
            return {"name": row.name, "value": "0"}
        case "required" | "open" if _is_secret(row.variable):
            secret = {
                "name": f"{dns(node_name)}-settings",
                "key": row.name,
                "optional": not row.variable.required,
            }
            return {"name": row.name, "valueFrom": {"secretKeyRef": secret}}
        case _:
            return None


def _is_secret(variable: Variable) -> bool:
    """Whether whoever deploys it has a secret with the value, or may have one."""
    return variable.required or variable.type == "secret" or variable.role in wiring.TOKENS


def _address(spec: Spec, deployment: Deployment, peer: Peer) -> str:
    """A service, or one pod behind it, and the port."""
    host = wiring.host(peer) if peer.place is None else f"{wiring.host(peer)}.{dns(peer.node)}"
    return f"{host}:{wiring.port(spec, peer.node, deployment.nodes[peer.node])}"


def _url(spec: Spec, deployment: Deployment, peer: Peer) -> str:
    number = wiring.port(spec, peer.node, deployment.nodes[peer.node], "http")
    return f"{wiring.scheme(spec)}://{wiring.host(peer)}:{number}"


def _probes(deployment: Deployment, node_name: str, scheme: str) -> dict[str, Any]:
    """How a node is checked.

    A listener is checked itself: over HTTP for its life and for its readiness apart, else by its port. A node
    without one is ready while what it needs can be reached; it is not restarted for the lack of it, because
    that would cost it the work it has in hand.
    """
    node = deployment.nodes[node_name]
    timing = deployment.healthcheck
    pace = {
        "periodSeconds": wiring.seconds(timing.interval),
        "timeoutSeconds": wiring.seconds(timing.timeout),
        "failureThreshold": timing.retries,
    }
    if not node.listeners:
        check: dict[str, Any] = {"exec": {"command": ["sh", "-c", wiring.healthcheck(deployment, node_name)]}}
        return {"readinessProbe": check | pace}
    alive = ready = {"tcpSocket": {"port": "api"}}
    if node.http:
        alive, ready = (
            {"httpGet": {"path": path, "port": "http", "scheme": scheme}} for path in ("/healthz", "/readyz")
        )
    return {
        "startupProbe": alive | pace | {"failureThreshold": _startup_failures(timing)},
        "readinessProbe": ready | pace,
        "livenessProbe": alive | pace,
    }


def _startup_failures(timing: Timing) -> int:
    """Failed checks until a start counts as failed: those of the start period and the retries after it."""
    return math.ceil(wiring.seconds(timing.start_period) / wiring.seconds(timing.interval)) + timing.retries
