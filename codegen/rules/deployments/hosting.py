"""Rules of deployments.yaml about hosted components, ingress, slots, commands and healthchecks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.language.deployments import Deployment
from codegen.rules.deployments.engines import ONE_PROCESS
from codegen.rules.environment.variables import find_problem, parse_default
from codegen.rules.lookup import find_public_methods, format_list
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec

LOAD_PLACEHOLDERS = ("addresses", "ca_file", "results")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000}


@rule(
    "E701",
    "A node hosts something that is no component.",
    wrong="nodes: {queue: {hosts: [queues]}}",
    right="nodes: {queue: {hosts: [queue]}}",
    spreads=True,
)
def check_components_exist(spec: Spec) -> Iterator[Finding]:
    for deployment_name, _, node_name, node in spec.nodes():
        for index, component in enumerate(node.hosts):
            place = spec.place("deployments", deployment_name, "nodes", node_name, "hosts", index)
            known = spec.services.components
            yield from report_unknown(
                spec, place, f"The node '{node_name}' hosts", component, known, "which is no component"
            )


@rule(
    "E702",
    "A deployment leaves a component out.",
    wrong="nodes: {desk: {hosts: [desk]}}  # and no node for the queue",
    right="nodes: {desk: {hosts: [desk]}, queue: {hosts: [queue]}}",
    needs=("deployments", "services"),
    spreads=True,
)
def check_components_hosted(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        hosted = {component for node in deployment.nodes.values() for component in node.hosts}
        left_out = [component for component in spec.services.components if component not in hosted]
        if left_out:
            message = f"No node of '{name}' hosts {format_list(left_out)}."
            yield Finding(spec.place("deployments", name, "nodes", key=True), message, "Let a node host it.")


@rule(
    "E703",
    "Two nodes of a deployment host the same component, which keeps something by itself or is served twice.",
    wrong="nodes: {desk: {hosts: [desk, queue]}, queue: {hosts: [queue]}}",
    right="nodes: {desk: {hosts: [desk]}, queue: {hosts: [queue]}}",
    spreads=True,
)
def check_hosts_unique(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        exclusive, in_files = _find_exclusive_components(spec, deployment)
        first: dict[str, str] = {}
        for node_name, node in deployment.nodes.items():
            for index, component in enumerate(node.hosts):
                if component not in exclusive:
                    continue
                if (other := first.setdefault(component, node_name)) != node_name:
                    place = spec.place("deployments", name, "nodes", node_name, "hosts", index)
                    message = f"The node '{node_name}' hosts {component}, and so does '{other}'."
                    more = "" if component in in_files else "; for more of the same, say 'replicas'"
                    yield Finding(place, message, f"Leave it to one of them{more}.")


def _find_exclusive_components(spec: Spec, deployment: Deployment) -> tuple[set[str], set[str]]:
    """Find the components that one node of a deployment may host, and those among them that own a file."""
    is_elsewhere = deployment.engine not in ONE_PROCESS
    rows = (spec.placed_by(deployment.engine) if is_elsewhere else spec).lifecycle.entities.values()
    in_servers = {row.held_by for row in rows if row.in_postgres or row.in_redis}
    in_files = {row.held_by for row in rows if row.in_sqlite}
    served = {name for name, row in spec.services.components.items() if row.serves and name not in in_servers}
    return in_files | served | {row.held_by for row in rows if row.kept_in.store == "memory"}, in_files


@rule(
    "E714",
    "Clients are let in to a node that does not exist.",
    wrong="ingress: [gatway]",
    right="ingress: [desk]",
    spreads=True,
)
def check_ingress_exists(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        for index, node in enumerate(deployment.ingress):
            place = spec.place("deployments", name, "ingress", index)
            yield from report_unknown(
                spec, place, "Clients outside reach", node, deployment.nodes, "which is no node"
            )


@rule(
    "E715",
    "Clients are let in to a node that has nothing for them.",
    wrong="ingress: [desk, queue]  # no client outside may call the queue",
    right="ingress: [desk]",
    needs=("callers", "services", "deployments"),
)
def check_ingress_used(spec: Spec) -> Iterator[Finding]:
    public = {spec.methods[ref].component for ref in find_public_methods(spec)}
    for name, deployment in spec.deployments.root.items():
        for index, node_name in enumerate(deployment.ingress):
            node = deployment.nodes.get(node_name)
            if node and public.isdisjoint(node.hosts):
                place = spec.place("deployments", name, "ingress", index)
                message = f"Clients outside reach '{node_name}', but may call nothing there."
                yield Finding(place, message, "Remove it from 'ingress'.")


@rule(
    "E716",
    "Someone outside may call a service, but is not let in to its node.",
    wrong="ingress: []  # and client may call DeskService",
    right="ingress: [desk]",
    needs=("callers", "services", "deployments"),
)
def check_ingress_complete(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        for node_name, node in deployment.nodes.items():
            offered = spec.services_of(deployment, node)
            refs = sorted(
                ref for ref in find_public_methods(spec) if spec.methods[ref].service_name in offered
            )
            if refs and node_name not in deployment.ingress and not node.on_demand:
                place = spec.place("deployments", name, "ingress")
                message = f"Someone outside may call {refs[0]}, but cannot reach '{node_name}'."
                yield Finding(place, message, f"Add '{node_name}' to 'ingress'.")


@rule(
    "E717",
    "The worker slots are counted by something that is no number of a node.",
    wrong="slots: {variable: SLOTS, total: 6}",
    right="slots: {variable: WORKER_SLOTS, total: 6}",
    spreads=True,
)
def check_slot_variable(spec: Spec) -> Iterator[Finding]:
    variables = spec.environment.variables
    for name, deployment in spec.deployments.root.items():
        if deployment.slots is None:
            continue
        slot = deployment.slots.variable
        place = spec.place("deployments", name, "slots", "variable")
        numbers = [each for each, row in variables.items() if row.type == "int"]
        if slot not in variables:
            yield from report_unknown(spec, place, f"The slots of '{name}' are counted by", slot, numbers)
        elif slot not in numbers:
            message = f"The slots of '{name}' are counted by {slot}, which is of type {variables[slot].type}."
            yield Finding(place, message, "Name a variable of type int.")


@rule(
    "E719",
    "A node has a default for a variable that it does not read, or one that the variable cannot have.",
    wrong='nodes: {desk: {defaults: {WORKER_SLOTS: "1"}}}',
    right='nodes: {worker: {defaults: {WORKER_SLOTS: "1"}}}',
    needs=("deployments", "environment"),
    spreads=True,
)
def check_node_defaults(spec: Spec) -> Iterator[Finding]:
    for deployment_name, deployment, node_name, node in spec.nodes():
        read = spec.variables_of(deployment, node_name)
        for name, text in node.defaults.items():
            path = (deployment_name, "nodes", node_name, "defaults", name)
            if name not in read:
                place = spec.place("deployments", *path, key=True)
                lack = "which it does not read"
                yield from report_unknown(
                    spec, place, f"The node '{node_name}' has a default for", name, read, lack
                )
                continue
            if problem := find_problem(read[name], parse_default(read[name], text)):
                message = f"The default of {name} on '{node_name}' is '{text}', {problem[0]}."
                hint = "" if problem[1].startswith("Write it without") else problem[1]
                yield Finding(spec.place("deployments", *path), message, hint)


@rule(
    "E718",
    "The worker slots of all nodes are not what the deployment says they are together.",
    wrong="slots: {variable: WORKER_SLOTS, total: 6}  # and six nodes with 2 each",
    right="slots: {variable: WORKER_SLOTS, total: 6}  # and six nodes with 1 each",
    needs=("deployments", "environment"),
)
def check_slot_total(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        if deployment.slots is None or deployment.slots.variable not in spec.environment.variables:
            continue
        counts = _count_slots(spec, deployment, deployment.slots.variable)
        if None in counts.values():
            node = next(node for node, count in counts.items() if count is None)
            message = (
                f"{deployment.slots.variable} has no default on '{node}', so its slots cannot be counted."
            )
            place = spec.place("deployments", name, "slots", "variable")
            yield Finding(place, message, f"Give it one in 'defaults' of '{node}'.")
        elif sum(count or 0 for count in counts.values()) != deployment.slots.total:
            total = sum(count or 0 for count in counts.values())
            replicas = {node: deployment.nodes[node].replicas for node in counts}
            parts = ", ".join(f"{count} on {replicas[node]} x '{node}'" for node, count in counts.items())
            wanted = deployment.slots.total
            message = (
                f"The slots of '{name}' add up to {total} ({parts or 'no node has any'}), not to {wanted}."
            )
            place = spec.place("deployments", name, "slots", "total")
            yield Finding(
                place, message, f"Change the total, or {deployment.slots.variable} in 'defaults' of a node."
            )


def _count_slots(spec: Spec, deployment: Deployment, variable: str) -> dict[str, int | None]:
    """Count the slots of all replicas of each node that has any; None where they are not known."""
    counts: dict[str, int | None] = {}
    for name, node in deployment.nodes.items():
        if variable in spec.variables_of(deployment, name):
            text = node.defaults.get(variable, spec.environment.variables[variable].default)
            known = isinstance(text, int) or (isinstance(text, str) and text.isdecimal())
            counts[name] = int(text or 0) * node.replicas if known else None
    return counts


@rule(
    "E727",
    "A start command is the same for several nodes, or has a placeholder that means nothing.",
    wrong="command: python -m serve  # of six nodes",
    right="command: python -m serve {node}",
)
def check_command(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        place = spec.place("deployments", name, "command")
        placeholders = re.findall(r"\{([^{}]*)\}", deployment.command)
        for placeholder in placeholders:
            if placeholder != "node":
                message = f"The command has the placeholder '{{{placeholder}}}', which means nothing."
                yield Finding(place, message, "There is {node}, the name of the node.")
        if len(deployment.nodes) > 1 and "node" not in placeholders:
            message = f"All {len(deployment.nodes)} nodes of '{name}' have the same command."
            yield Finding(place, message, "Put {node} where the name of the node goes.")


@rule(
    "E729",
    "A load generator has no addresses, an unknown placeholder, or no node to call.",
    wrong="load_generator: {command: python -m load}",
    right='load_generator: {command: "python -m load --target {addresses}"}',
)
def check_load_generator(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        if deployment.load_generator is None:
            continue
        place = spec.place("deployments", name, "load_generator", "command")
        placeholders = re.findall(r"\{([^{}]*)\}", deployment.load_generator.command)
        unknown_ones = [each for each in placeholders if each not in LOAD_PLACEHOLDERS]
        for placeholder in unknown_ones:
            message = f"The load generator has the placeholder '{{{placeholder}}}', which means nothing."
            known = format_list([f"{{{each}}}" for each in LOAD_PLACEHOLDERS])
            yield Finding(place, message, f"There are {known}.")
        if "addresses" not in placeholders and not unknown_ones:
            message = f"The command of the load generator of '{name}' has no addresses to call."
            yield Finding(place, message, "Put {addresses} where the addresses of the ingress nodes go.")
        if not any(each in deployment.nodes and deployment.nodes[each].listen for each in deployment.ingress):
            message = f"The load generator of '{name}' has no node to call."
            yield Finding(
                place, message, "Let 'ingress' have a node with 'listen', or remove the load generator."
            )


@rule(
    "E730",
    "A single check may take longer than the container's check as a whole.",
    wrong="healthcheck: {timeout: 2s, timeout_ms: 3000}",
    right="healthcheck: {timeout: 2s, timeout_ms: 1000}",
)
def check_healthcheck_timeout(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        number, unit = re.fullmatch(r"([0-9]+)(ms|s|m)", deployment.healthcheck.timeout).groups()  # type: ignore[union-attr]
        if deployment.healthcheck.timeout_ms > int(number) * _MILLISECONDS[unit]:
            place = spec.place("deployments", name, "healthcheck", "timeout_ms")
            message = (
                f"A check may take {deployment.healthcheck.timeout_ms} ms, longer than "
                f"the timeout of {deployment.healthcheck.timeout}."
            )
            yield Finding(place, message, "Let timeout_ms be the shorter one.")
