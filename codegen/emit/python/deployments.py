"""Deployments as typed data, from which nodes are started and resolved."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.python.callers import format_method_path
from codegen.language.deployments import Deployment, Node
from codegen.source.spec import Spec

_IMPORT = "from runtime.model.system import"
_TABLES = ("Announced", "Deployment", "Healthcheck", "Listener", "Node", "Routing")
_ALL = ", ".join(_TABLES)


def emit(spec: Spec) -> Iterator[Artefact]:
    text = render_template(
        "python/deployments.py.j2",
        spec,
        tables=_ALL,
        served_services=lambda deployment, node: list_served_services(spec, deployment, node),
        upstream_services=lambda deployment, target: list_served_services(
            spec, deployment, deployment.nodes[target]
        ),
        path=lambda ref: format_method_path(spec, spec.methods[ref]),
    )
    used = [name for name in _TABLES if f"{name}(" in text]
    text = text.replace(f"{_IMPORT} {_ALL}\n", f"{_IMPORT} {', '.join(used)}\n", 1)
    yield Artefact(f"generated/{spec.name}/deployments.py", text)


def list_served_services(spec: Spec, deployment: Deployment, node: Node) -> list[str]:
    """List the services that a node serves on its port.

    Where components call each other in process, only services for callers outside the components are served.
    """
    hosted = spec.services_of(deployment, node)
    if deployment.transport != "in_process":
        return hosted
    outsiders = set(spec.callers.principals) - set(spec.services.components)
    return [name for name in hosted if any(name in spec.callers.may_call.get(each, {}) for each in outsiders)]
