"""Differences of deployments.yaml: deployments, nodes and routing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.language.deployments import Deployment, Listen, Node
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import format_change, iter_added, iter_changed_keys, iter_common, list_gained
from codegen.source.spec import Spec


@kind("deployment.added", "There is one more deployment.", Verdict.COMPATIBLE)
def find_deployment_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(old.deployments.root, new.deployments.root):
        yield SpecChange(name, f"deployment {name} is added", ("deployments", name))


@kind("deployment.removed", "A deployment is gone.", Verdict.CONFIGURATION)
def find_deployment_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.deployments.root, old.deployments.root):
        yield SpecChange(name, f"deployment {name} is removed", ("deployments", name))


@kind("deployment.transport", "The components of a deployment use another transport.", Verdict.BEHAVIOUR)
def find_deployment_transport(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        if before.transport != after.transport:
            text = f"{name} transport {format_change(before.transport, after.transport)}"
            yield SpecChange(name, text, ("deployments", name, "transport"))


@kind("deployment.engine", "The entities of a deployment are kept by another engine.", Verdict.BEHAVIOUR)
def find_deployment_engine(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        if before.engine != after.engine:
            text = f"{name} engine {format_change(before.engine, after.engine)}"
            yield SpecChange(name, text, ("deployments", name, "engine"))


@kind("deployment.command", "The nodes of a deployment have another start command.", Verdict.CONFIGURATION)
def find_deployment_command(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        if before.command != after.command:
            text = f"{name} command '{before.command}' -> '{after.command}'"
            yield SpecChange(name, text, ("deployments", name, "command"))


@kind("deployment.healthcheck", "The nodes of a deployment are checked at other times.", Verdict.COMPATIBLE)
def find_deployment_healthcheck(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        for word, was, now in iter_changed_keys(before.healthcheck, after.healthcheck):
            path = ("deployments", name, "healthcheck", word)
            yield SpecChange(f"{name}.{word}", f"{name} healthcheck {word} {format_change(was, now)}", path)


@kind("ingress.added", "Clients outside can reach one more node.", Verdict.WIDENS)
def find_ingress_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        for node in list_gained(before.ingress, after.ingress):
            yield SpecChange(
                f"{name}.{node}",
                f"{node} of {name} opens to clients outside",
                ("deployments", name, "ingress"),
            )


@kind("ingress.removed", "Clients outside can no longer reach a node.", Verdict.BEHAVIOUR)
def find_ingress_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        for node in list_gained(after.ingress, before.ingress):
            yield SpecChange(
                f"{name}.{node}",
                f"{node} of {name} closes to clients outside",
                ("deployments", name, "ingress"),
            )


@kind("slots.total", "A deployment has another total of slots.", Verdict.BEHAVIOUR)
def find_slots_total(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        was, now = (each.slots.total if each.slots else None for each in (before, after))
        if was != now:
            yield SpecChange(
                name, f"{name} slots {format_change(was, now)}", ("deployments", name, "slots", "total")
            )


@kind("slots.variable", "The slots of a deployment are set by another variable.", Verdict.CONFIGURATION)
def find_slots_variable(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        was, now = (each.slots.variable if each.slots else None for each in (before, after))
        if was != now:
            text = f"{name} slots are set by {format_change(was, now)}"
            yield SpecChange(name, text, ("deployments", name, "slots", "variable"))


@kind("deployment.load_generator", "A deployment has another load generator.", Verdict.COMPATIBLE)
def find_deployment_load_generator(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        was, now = (each.load_generator.command if each.load_generator else None for each in (before, after))
        if was != now:
            text = f"{name} load generator {format_change(was, now)}"
            yield SpecChange(name, text, ("deployments", name, "load_generator"))


@kind("node.added", "A deployment has one more kind of node.", Verdict.CONFIGURATION)
def find_node_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        for node, row in iter_added(before.nodes, after.nodes):
            text = f"node {node} is added to {name} with {', '.join(row.hosts)}"
            yield SpecChange(f"{name}.{node}", text, ("deployments", name, "nodes", node))


@kind("node.removed", "A deployment lacks a kind of node.", Verdict.CONFIGURATION)
def find_node_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        for node, _ in iter_added(after.nodes, before.nodes):
            yield SpecChange(
                f"{name}.{node}", f"node {node} is removed from {name}", ("deployments", name, "nodes", node)
            )


@kind("node.replicas", "A deployment has more or fewer nodes of a kind.", Verdict.CONFIGURATION)
def find_node_replicas(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        if before.replicas != after.replicas:
            yield SpecChange(
                name, f"{name} replicas {format_change(before.replicas, after.replicas)}", (*path, "replicas")
            )


@kind("node.hosts", "A node carries other components.", Verdict.BEHAVIOUR)
def find_node_hosts(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        for component in list_gained(before.hosts, after.hosts):
            text = f"{name} gains the component {component}"
            yield SpecChange(f"{name} {component}", text, (*path, "hosts"), verdict=Verdict.COMPATIBLE)
        for component in list_gained(after.hosts, before.hosts):
            yield SpecChange(
                f"{name} {component}", f"{name} loses the component {component}", (*path, "hosts")
            )


@kind("node.listen", "A node takes gRPC calls elsewhere.", Verdict.CONFIGURATION)
def find_node_listen(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        yield from _compare_listeners(name, "listens on", before.listen, after.listen, (*path, "listen"))


@kind("node.http", "A node takes HTTP requests elsewhere.", Verdict.CONFIGURATION)
def find_node_http(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        yield from _compare_listeners(
            name, "takes HTTP requests on", before.http, after.http, (*path, "http")
        )


@kind("node.anonymous", "Another principal calls a node anonymously, or none does.", Verdict.BEHAVIOUR)
def find_node_anonymous(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        pairs = (("listen", before.listen, after.listen), ("http", before.http, after.http))
        for word, left, right in pairs:
            was, now = (each.anonymous if each else None for each in (left, right))
            if was != now:
                verdict = Verdict.WIDENS if now else None
                text = f"{name} {word} takes calls without proof from {format_change(was, now)}"
                yield SpecChange(f"{name} {word}", text, (*path, word, "anonymous"), verdict=verdict)


@kind("node.upstream", "A node has other upstreams, or other variables for them.", Verdict.CONFIGURATION)
def find_node_upstream(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        yield from _compare_entries(name, "upstream", before.upstreams, after.upstreams, (*path, "upstreams"))


@kind("node.finds", "A node discovers other nodes, or by other variables.", Verdict.CONFIGURATION)
def find_node_finds(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        yield from _compare_entries(name, "finds for", before.finds, after.finds, (*path, "finds"))


@kind("node.announced", "A node is announced on its network under another name.", Verdict.BEHAVIOUR)
def find_node_announced(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        if before.announced != after.announced:
            text = f"{name} is announced: {format_change(before.announced, after.announced)}"
            verdict = None if before.announced else Verdict.COMPATIBLE
            yield SpecChange(name, text, (*path, "announced"), verdict=verdict)


@kind("node.default", "A variable has another default on a node.", Verdict.BEHAVIOUR)
def find_node_default(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        yield from _compare_entries(name, "default", before.defaults, after.defaults, (*path, "defaults"))


@kind("node.on_demand", "A node is started with its deployment, or no longer is.", Verdict.BEHAVIOUR)
def find_node_on_demand(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        if before.on_demand != after.on_demand:
            phrase = "is started on demand only" if after.on_demand else "is started with its deployment"
            yield SpecChange(name, f"{name} {phrase}", (*path, "on_demand"))


@kind("node.unless", "A node leaves out components by other variables.", Verdict.CONFIGURATION)
def find_node_unless(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        yield from _compare_entries(name, "unless", before.unless, after.unless, (*path, "unless"))


@kind("node.optional", "A port is opened only where its variable says one, or always.", Verdict.CONFIGURATION)
def find_node_optional(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        for word, left, right in (("listen", before.listen, after.listen), ("http", before.http, after.http)):
            # An added or removed listener is reported by its host and port.
            if left and right and left.optional != right.optional:
                phrase = "opened only where a port is set" if right.optional else "always opened"
                text = f"{name} {word} is {phrase}"
                yield SpecChange(f"{name} {word}", text, (*path, word, "optional"))


@kind("node.carrier", "A node has another carrier of gRPC.", Verdict.CONFIGURATION)
def find_node_carrier(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        # An added or removed listener is reported by its host and port.
        if before.listen and after.listen and before.listen.carrier != after.listen.carrier:
            text = f"{name} takes gRPC calls by {format_change(before.listen.carrier, after.listen.carrier)}"
            yield SpecChange(name, text, (*path, "listen", "carrier"))


@kind("node.healthcheck", "A node has another healthcheck.", Verdict.CONFIGURATION)
def find_node_healthcheck(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_nodes(old, new):
        if before.healthcheck is None or after.healthcheck is None:
            if before.healthcheck != after.healthcheck:
                phrase = "is checked" if after.healthcheck else "is not checked any more"
                yield SpecChange(name, f"{name} {phrase}", path)
            continue
        for word, was, now in iter_changed_keys(before.healthcheck, after.healthcheck):
            text = f"{name} healthcheck {word} {format_change(was, now)}"
            yield SpecChange(f"{name} {word}", text, (*path, "healthcheck", word))


@kind("routing.added", "Clients have to find the owner of a key.", Verdict.BEHAVIOUR)
def find_routing_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        if after.routing and not before.routing:
            yield SpecChange(name, f"{name} routes by key", ("deployments", name, "routing"))


@kind("routing.removed", "Clients no longer find the owner of a key.", Verdict.BEHAVIOUR)
def find_routing_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        if before.routing and not after.routing:
            yield SpecChange(name, f"{name} no longer routes by key", ("deployments", name, "routing"))


@kind("routing.changed", "Clients find the owner of a key by another routing.", Verdict.BEHAVIOUR)
def find_routing_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_deployments(old, new):
        if before.routing and after.routing:
            path = ("deployments", name, "routing")
            yield from _compare_entries(
                name, "routing key of", before.routing.keys, after.routing.keys, (*path, "keys")
            )
            for word, was, now in iter_changed_keys(before.routing, after.routing, "keys"):
                yield SpecChange(
                    f"{name} {word}", f"{name} routing {word} {format_change(was, now)}", (*path, word)
                )


def _compare_listeners(
    name: str, verb: str, before: Listen | None, after: Listen | None, at: Path
) -> Iterator[SpecChange]:
    was, now = (f"{each.host}:{each.port}" if each else "nowhere" for each in (before, after))
    if was != now:
        paths = [
            (*at, "host"),
            (*at, "port"),
            *([] if before and after else [(*at, "optional"), (*at, "carrier")]),
        ]
        yield SpecChange(name, f"{name} {verb} {format_change(was, now)}", *paths)


def _iter_deployments(old: Spec, new: Spec) -> Iterator[tuple[str, Deployment, Deployment]]:
    yield from iter_common(old.deployments.root, new.deployments.root)


def _iter_nodes(old: Spec, new: Spec) -> Iterator[tuple[str, Node, Node, Path]]:
    for name, before, after in _iter_deployments(old, new):
        for node, was, now in iter_common(before.nodes, after.nodes):
            yield f"{name}.{node}", was, now, ("deployments", name, "nodes", node)


def _compare_entries(
    name: str, what: str, before: Mapping[str, str], after: Mapping[str, str], path: Path
) -> Iterator[SpecChange]:
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            text = f"{name} {what} {key} {format_change(before.get(key), after.get(key))}"
            yield SpecChange(f"{name} {key}", text, (*path, key))
