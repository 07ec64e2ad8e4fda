"""Deployments as typed data, from which nodes are started and found."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.python.callers import path_of
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
        serves=lambda deployment, node: serves(spec, deployment, node),
        upstream_services=lambda deployment, target: serves(spec, deployment, deployment.nodes[target]),
        path=lambda ref: path_of(spec, spec.methods[ref]),
    )
    used = [name for name in _TABLES if f"{name}(" in text]
    text = text.replace(f"{_IMPORT} {_ALL}\n", f"{_IMPORT} {', '.join(used)}\n", 1)
    yield Artefact(f"generated/{spec.name}/deployments.py", text)


def serves(spec: Spec, deployment: Deployment, node: Node) -> list[str]:
    """The services that a node offers on its port.

    Where components talk in process, only what someone outside the components may call is on the wire.
    """
    offered = spec.services_of(deployment, node)
    if deployment.transport != "in_process":
        return offered
    outsiders = set(spec.callers.principals) - set(spec.services.components)
    return [
        name for name in offered if any(name in spec.callers.may_call.get(each, {}) for each in outsiders)
    ]
