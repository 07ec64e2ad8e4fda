"""Rules of deployments.yaml about how clients find the node that owns a key."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.deployments import Deployment, Routing
from codegen.rules.lookup import find_public_methods, get_request_fields, is_other_type
from codegen.rules.rule import Finding, report_unknown, report_unknown_method, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path


@rule(
    "E720",
    "Clients route a method that no service has.",
    wrong="keys: {DeskService.GetStatus: job_id}",
    right="keys: {DeskService.GetJobStatus: job_id}",
    spreads=True,
)
def check_routed_methods_exist(spec: Spec) -> Iterator[Finding]:
    for name, _, routing in _iter_routings(spec):
        for path, ref in _iter_routed_methods(routing):
            place = spec.place("deployments", name, "routing", *path, key=path[0] == "keys")
            yield from report_unknown_method(spec, place, "Clients route", ref)


@rule(
    "E721",
    "Clients route by a field that the request does not have, or that is no string.",
    wrong="keys: {DeskService.GetJobStatus: id}",
    right="keys: {DeskService.GetJobStatus: job_id}",
)
def check_routing_keys(spec: Spec) -> Iterator[Finding]:
    for name, _, routing in _iter_routings(spec):
        for ref, field in routing.keys.items():
            fields = get_request_fields(spec, ref)
            if fields is None:
                continue
            place = spec.place("deployments", name, "routing", "keys", ref)
            if field not in fields:
                lack = f"which {spec.methods[ref].request} does not have"
                yield from report_unknown(spec, place, f"{ref} is routed by", field, fields, lack)
            elif is_other_type(spec, fields[field], "string"):
                message = f"{ref} is routed by '{field}', which is of type {fields[field].type}."
                yield Finding(place, message, "Name a string.")


@rule(
    "E722",
    "Clients route a method that no client outside may call.",
    wrong="keys: {JobInternalService.GetJobRecord: job_id}",
    right="keys: {DeskService.GetJobStatus: job_id}",
    needs=("callers",),
)
def check_routed_methods_public(spec: Spec) -> Iterator[Finding]:
    public = find_public_methods(spec)
    for name, _, routing in _iter_routings(spec):
        for path, ref in _iter_routed_methods(routing):
            if ref in spec.methods and ref not in public:
                place = spec.place("deployments", name, "routing", *path, key=path[0] == "keys")
                yield Finding(place, f"Clients route {ref}, which no client outside may call.", "Remove it.")


@rule(
    "E723",
    "Clients route, but there is only one of each node.",
    wrong="nodes: {monolith: {replicas: 1}}\nrouting: {…}",
    right="nodes: {monolith: {replicas: 6}}\nrouting: {…}",
    needs=("deployments",),
)
def check_routing_used(spec: Spec) -> Iterator[Finding]:
    for name, deployment, _ in _iter_routings(spec):
        if not _list_replicated_nodes(deployment):
            place = spec.place("deployments", name, "routing", key=True)
            message = f"Clients of '{name}' route, but each node that they reach is there once."
            yield Finding(place, message, "Remove 'routing', or say 'replicas' of a node in 'ingress'.")


@rule(
    "E724",
    "The nodes to choose from are in variables of the wrong type, or in some that the nodes do not read.",
    wrong="routing: {order: NODE_PORT, index: NODE_INDEX}",
    right="routing: {order: NODE_ADDRS, index: NODE_INDEX}",
)
def check_routing_variables(spec: Spec) -> Iterator[Finding]:
    variables = spec.environment.variables
    for name, deployment, routing in _iter_routings(spec):
        for key, variable, type_ in (("order", routing.order, "addresses"), ("index", routing.index, "int")):
            place = spec.place("deployments", name, "routing", key)
            row = variables.get(variable)
            matching = [each for each, row in variables.items() if row.type == type_]
            if row is None:
                yield from report_unknown(spec, place, f"The {key} of the nodes is in", variable, matching)
            elif row.type != type_:
                message = f"The {key} of the nodes is in {variable}, which is of type {row.type}."
                yield Finding(place, message, f"Name a variable of type {type_}.")
            else:
                for node in _list_replicated_nodes(deployment):
                    if variable not in spec.variables_of(deployment, node):
                        message = f"The {key} of the nodes is in {variable}, which '{node}' does not read."
                        hint = f"Add '{node}' to 'read_by' of {variable} in environment.yaml."
                        yield Finding(place, message, hint)


@rule(
    "E725",
    "Clients cannot tell where to send a method, because it is routed in no way or in two.",
    wrong="keys: {DeskService.SubmitJob: client_request_id}\nper_node: []  # and ListJobs",
    right=("keys: {DeskService.SubmitJob: client_request_id}\nper_node: [DeskService.ListJobs]"),
    needs=("deployments", "services", "callers"),
)
def check_routed_once(spec: Spec) -> Iterator[Finding]:
    for name, _, routing in _iter_routings(spec):
        for index, ref in enumerate(routing.per_node):
            if ref in routing.keys:
                place = spec.place("deployments", name, "routing", "per_node", index)
                yield Finding(
                    place, f"Clients route {ref} by a key and to each node as well.", "Remove one of them."
                )
        for ref in sorted(find_public_methods(spec) - set(routing.keys) - set(routing.per_node)):
            place = spec.place("deployments", name, "routing", "keys", key=True)
            yield Finding(
                place, f"Clients cannot tell where to send {ref}.", "Add it to 'keys' or 'per_node'."
            )


@rule(
    "E726",
    "A node draws ids that are not the key of an entity.",
    wrong="routing: {mints: id}",
    right="routing: {mints: job_id}",
)
def check_minted_ids(spec: Spec) -> Iterator[Finding]:
    keys = [entity.key for entity in spec.lifecycle.entities.values()]
    for name, _, routing in _iter_routings(spec):
        place = spec.place("deployments", name, "routing", "mints")
        yield from report_unknown(
            spec, place, "Nodes draw ids for", routing.mints, keys, "which is the key of no entity"
        )


def _iter_routings(spec: Spec) -> Iterator[tuple[str, Deployment, Routing]]:
    for name, deployment in spec.deployments.root.items():
        if deployment.routing:
            yield name, deployment, deployment.routing


def _iter_routed_methods(routing: Routing) -> Iterator[tuple[Path, str]]:
    yield from ((("keys", ref), ref) for ref in routing.keys)
    yield from ((("per_node", index), ref) for index, ref in enumerate(routing.per_node))


def _list_replicated_nodes(deployment: Deployment) -> list[str]:
    """List the ingress nodes that have several replicas."""
    return [
        name for name, node in deployment.nodes.items() if node.replicas > 1 and name in deployment.ingress
    ]
