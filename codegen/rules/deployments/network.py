"""Rules of deployments.yaml about hosts in variables, and nodes that are discovered on the network."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.language.deployments import Deployment, Node
from codegen.rules.deployments.wiring import check_variable
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

HOST = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


@rule(
    "E733",
    "A node takes calls on a host that is in no variable with a text, or that may be left unset.",
    wrong='http: {host: "${SHOP_PORT}", port: SHOP_PORT}',
    right='http: {host: "${SHOP_HOST}", port: SHOP_PORT}',
    needs=("environment", "deployments"),
    spreads=True,
)
def check_hosts(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        for word, listener in node.listeners.items():
            place = spec.place("deployments", *path, word, "host")
            subject = f"The node '{node_name}' has its host in"
            if found := HOST.fullmatch(listener.host):
                name, row = found[1], spec.environment.variables.get(found[1])
                yield from check_variable(spec, place, subject, name, "string", deployment, node_name)
                if row and row.type == "string" and not row.required and row.default is None:
                    message = f"{subject} {name}, which may be left unset."
                    hint = f"Give a default to {name} in environment.yaml."
                    yield Finding(place, message, hint, f"{name}, unset")
            elif "$" in listener.host:
                message = f"The node '{node_name}' takes calls on '{listener.host}', which is no host."
                yield Finding(place, message, "Write an address, or '${NAME}' with the name of a variable.")


@rule(
    "E734",
    "A node is announced without a port for HTTP, under a taken name, or by what is no switch or no name.",
    wrong='shop: {announced: {service: "_shop._tcp.local.", if: SHOP_PORT}}',
    right='shop: {announced: {service: "_shop._tcp.local.", if: SHOP_SIGN}}',
    needs=("environment", "deployments"),
    spreads=True,
)
def check_announcements(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        if (announced := node.announced) is None:
            continue
        here = (*path, "announced")
        subject = f"Whether '{node_name}' is announced is in"
        place = spec.place("deployments", *here, "if")
        yield from check_variable(spec, place, subject, announced.if_, "bool", deployment, node_name)
        row = spec.environment.variables.get(announced.if_)
        if row and row.type == "bool" and not row.required and row.default is None:
            message = f"{subject} {announced.if_}, which may be left unset."
            yield Finding(place, message, f"Give a default to {announced.if_} in environment.yaml.")
        if announced.name is not None:
            yield from _check_deployment_name(spec, here, announced.name, deployment, node_name)
        if node.http is None:
            message = f"'{node_name}' is announced, but has no listener for HTTP requests."
            yield Finding(spec.place("deployments", *here, key=True), message, "Say where by 'http'.")
        for word, name in (("service", announced.service), ("alias", announced.alias)):
            if name and (other := _find_namesake(deployment, node_name, word, name)):
                message = f"'{node_name}' is announced as {name}, and so is '{other}'."
                yield Finding(spec.place("deployments", *here, word), message, "Give each a name of its own.")


@rule(
    "E735",
    "A node looks on the network for one that is not announced, or for what is always set, or by no name.",
    wrong="press: {finds: {SHOP_URL: shop}}  # and the shop is not announced",
    right='press: {finds: {SHOP_URL: shop}}\nshop: {announced: {service: "_shop._tcp.local.", if: SIGN}}',
    needs=("environment", "deployments"),
    spreads=True,
)
def check_discovery(spec: Spec) -> Iterator[Finding]:
    for path, deployment, node_name, node in _iter_nodes(spec):
        for variable, target in node.finds.items():
            place = spec.place("deployments", *path, "finds", variable)
            key = spec.place("deployments", *path, "finds", variable, key=True)
            known = [name for name, other in deployment.nodes.items() if other.announced]
            subject = f"The node '{node_name}' looks for"
            yield from report_unknown(
                spec, place, subject, target, known, "which is no node that is announced"
            )
            subject = f"The node '{node_name}' has the URL of '{target}' in"
            yield from check_variable(spec, key, subject, variable, "url", deployment, node_name)
            row = spec.environment.variables.get(variable)
            if row and row.type == "url" and (row.required or row.default is not None):
                message = f"{subject} {variable}, which is always set, so nothing is ever looked up."
                yield Finding(key, message, f"Remove 'required' and 'default' from {variable}.")
        yield from _check_name_read(spec, path, deployment, node_name, node)


def _check_deployment_name(
    spec: Spec, here: Path, name: str, deployment: Deployment, node_name: str
) -> Iterator[Finding]:
    """Check that the variable with the name of a deployment is a string that the node reads."""
    place = spec.place("deployments", *here, "name")
    subject = f"The deployment of '{node_name}' has its name in"
    yield from check_variable(spec, place, subject, name, "string", deployment, node_name)


def _check_name_read(
    spec: Spec, path: Path, deployment: Deployment, node_name: str, node: Node
) -> Iterator[Finding]:
    """Check that a node that discovers others reads the variable with the name of their deployment."""
    seen: set[str] = set()
    for word, targets in (("finds", node.finds), ("upstreams", node.upstreams)):
        for variable, target in targets.items():
            other = deployment.nodes.get(target)
            name = other.announced.name if other is not None and other.announced is not None else None
            row = spec.environment.variables.get(name or "")
            if name is None or name in seen or row is None or row.type != "string":
                continue
            seen.add(name)
            key = spec.place("deployments", *path, word, variable, key=True)
            subject = f"The node '{node_name}' looks for '{target}' by the name in"
            yield from check_variable(spec, key, subject, name, "string", deployment, node_name)


def _find_namesake(deployment: Deployment, node_name: str, word: str, name: str) -> str | None:
    """Find the first node announced under a name, unless it is this node by this word."""
    for other_name, other in deployment.nodes.items():
        for other_word in ("service", "alias") if other.announced else ():
            if (other_name, other_word) == (node_name, word):
                return None
            if getattr(other.announced, other_word) == name:
                return other_name
    return None


def _iter_nodes(spec: Spec) -> Iterator[tuple[Path, Deployment, str, Node]]:
    for deployment_name, deployment, node_name, node in spec.nodes():
        yield (deployment_name, "nodes", node_name), deployment, node_name, node
