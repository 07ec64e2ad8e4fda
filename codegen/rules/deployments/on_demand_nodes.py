"""Rules of deployments.yaml about nodes on demand and components that a variable leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.rules.deployments.wiring import check_variable
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec


@rule(
    "E737",
    "A node leaves out what it does not host, all that it hosts, or by a variable that is no switch.",
    wrong="shed: {hosts: [gardener, warden], unless: {waden: NO_WARDEN}}",
    right="shed: {hosts: [gardener, warden], unless: {warden: NO_WARDEN}}",
    needs=("environment", "deployments"),
    spreads=True,
)
def check_unless(spec: Spec) -> Iterator[Finding]:
    for name, deployment, node_name, node in spec.nodes():
        path = (name, "nodes", node_name, "unless")
        for component, variable in node.unless.items():
            key, place = (spec.place("deployments", *path, component, key=each) for each in (True, False))
            lack = "which it does not host"
            yield from report_unknown(
                spec, key, f"The node '{node_name}' leaves out", component, node.hosts, lack
            )
            subject = f"Whether '{node_name}' leaves {component} out is in"
            yield from check_variable(spec, place, subject, variable, "bool", deployment, node_name)
            row = spec.environment.variables.get(variable)
            if row and row.type == "bool" and not row.required and row.default is None:
                message = f"{subject} {variable}, which may be left unset."
                yield Finding(place, message, f"Give a default to {variable} in environment.yaml.")
        if node.unless and set(node.hosts) <= set(node.unless):
            place = spec.place("deployments", *path, key=True)
            yield Finding(place, f"The node '{node_name}' may leave out all that it hosts.", "Keep one.")


@rule(
    "E738",
    "A node on demand is relied on by others, or a node that is started is not checked.",
    wrong="shed: {hosts: [gardener]}  # and no healthcheck",
    right="shed: {hosts: [gardener], on_demand: true}",
    needs=("deployments",),
)
def check_on_demand(spec: Spec) -> Iterator[Finding]:
    for name, deployment, node_name, node in spec.nodes():
        path = (name, "nodes", node_name)
        if not node.on_demand:
            if node.healthcheck is None:
                place = spec.place("deployments", *path, key=True)
                message = f"The node '{node_name}' has no healthcheck."
                yield Finding(place, message, "Add a 'healthcheck', or say 'on_demand: true'.")
            continue
        place = spec.place("deployments", *path, "on_demand", key=True)
        callers = [
            other
            for other, row in deployment.nodes.items()
            if node_name in (*row.upstreams.values(), *row.finds.values())
        ]
        if node_name in deployment.ingress:
            message = f"Clients outside reach '{node_name}', which starts only on demand."
            yield Finding(place, message, "Remove it from 'ingress', or remove 'on_demand'.")
        elif callers:
            message = f"The node '{callers[0]}' calls '{node_name}', which starts only on demand."
            yield Finding(place, message, "Remove 'on_demand'.")
        elif node.replicas > 1:
            message = f"There are {node.replicas} of '{node_name}', which starts only on demand."
            yield Finding(place, message, "Remove 'replicas', or remove 'on_demand'.")
