"""Differences of deployments.yaml: designs, nodes and how clients find the owner of a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.language.deployments import Deployment, Listen, Node
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import added, gained, kept, turn, words
from codegen.source.spec import Spec


@kind("deployment.added", "There is one more deployment.", Verdict.COMPATIBLE)
def deployment_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(old.deployments.root, new.deployments.root):
        yield Found(name, f"deployment {name} is added", ("deployments", name))


@kind("deployment.removed", "A deployment is gone.", Verdict.CONFIGURATION)
def deployment_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.deployments.root, old.deployments.root):
        yield Found(name, f"deployment {name} is removed", ("deployments", name))


@kind("deployment.transport", "The components of a deployment talk in another way.", Verdict.BEHAVIOUR)
def deployment_transport(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        if before.transport != after.transport:
            text = f"{name} transport {turn(before.transport, after.transport)}"
            yield Found(name, text, ("deployments", name, "transport"))


@kind("deployment.command", "The nodes of a deployment are started in another way.", Verdict.CONFIGURATION)
def deployment_command(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        if before.command != after.command:
            text = f"{name} command '{before.command}' -> '{after.command}'"
            yield Found(name, text, ("deployments", name, "command"))


@kind("deployment.healthcheck", "The nodes of a deployment are checked at other times.", Verdict.COMPATIBLE)
def deployment_healthcheck(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        for word, was, now in words(before.healthcheck, after.healthcheck):
            path = ("deployments", name, "healthcheck", word)
            yield Found(f"{name}.{word}", f"{name} healthcheck {word} {turn(was, now)}", path)


@kind("ingress.added", "Clients outside can reach one more node.", Verdict.WIDENS)
def ingress_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        for node in gained(before.ingress, after.ingress):
            yield Found(
                f"{name}.{node}",
                f"{node} of {name} opens to clients outside",
                ("deployments", name, "ingress"),
            )


@kind("ingress.removed", "Clients outside can no longer reach a node.", Verdict.BEHAVIOUR)
def ingress_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        for node in gained(after.ingress, before.ingress):
            yield Found(
                f"{name}.{node}",
                f"{node} of {name} closes to clients outside",
                ("deployments", name, "ingress"),
            )


@kind("slots.total", "A deployment has another total of slots.", Verdict.BEHAVIOUR)
def slots_total(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        was, now = (each.slots.total if each.slots else None for each in (before, after))
        if was != now:
            yield Found(name, f"{name} slots {turn(was, now)}", ("deployments", name, "slots", "total"))


@kind("slots.variable", "The slots of a deployment are set by another variable.", Verdict.CONFIGURATION)
def slots_variable(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        was, now = (each.slots.variable if each.slots else None for each in (before, after))
        if was != now:
            text = f"{name} slots are set by {turn(was, now)}"
            yield Found(name, text, ("deployments", name, "slots", "variable"))


@kind("deployment.server", "A deployment brings other servers along.", Verdict.CONFIGURATION)
def deployment_server(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        path = ("deployments", name, "servers")
        yield from _entries(name, "server", dict(before.servers.items()), dict(after.servers.items()), path)


@kind("deployment.load_generator", "A deployment has another load generator.", Verdict.COMPATIBLE)
def deployment_load_generator(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        was, now = (each.load_generator.command if each.load_generator else None for each in (before, after))
        if was != now:
            text = f"{name} load generator {turn(was, now)}"
            yield Found(name, text, ("deployments", name, "load_generator"))


@kind("node.added", "A deployment has one more kind of node.", Verdict.CONFIGURATION)
def node_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        for node, row in added(before.nodes, after.nodes):
            text = f"node {node} is added to {name} with {', '.join(row.hosts)}"
            yield Found(f"{name}.{node}", text, ("deployments", name, "nodes", node))


@kind("node.removed", "A deployment lacks a kind of node.", Verdict.CONFIGURATION)
def node_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        for node, _ in added(after.nodes, before.nodes):
            yield Found(
                f"{name}.{node}", f"node {node} is removed from {name}", ("deployments", name, "nodes", node)
            )


@kind("node.replicas", "A deployment has more or fewer nodes of a kind.", Verdict.CONFIGURATION)
def node_replicas(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        if before.replicas != after.replicas:
            yield Found(name, f"{name} replicas {turn(before.replicas, after.replicas)}", (*path, "replicas"))


@kind("node.hosts", "A node carries other components.", Verdict.BEHAVIOUR)
def node_hosts(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        for component in gained(before.hosts, after.hosts):
            text = f"{name} gains the component {component}"
            yield Found(f"{name} {component}", text, (*path, "hosts"), verdict=Verdict.COMPATIBLE)
        for component in gained(after.hosts, before.hosts):
            yield Found(f"{name} {component}", f"{name} loses the component {component}", (*path, "hosts"))


@kind("node.listen", "A node takes gRPC calls elsewhere.", Verdict.CONFIGURATION)
def node_listen(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        yield from _listener(name, "listens on", before.listen, after.listen, (*path, "listen"))


@kind("node.http", "A node takes HTTP requests elsewhere.", Verdict.CONFIGURATION)
def node_http(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        yield from _listener(name, "takes HTTP requests on", before.http, after.http, (*path, "http"))


@kind(
    "node.anonymous", "Someone else calls a node without proof, or must prove itself now.", Verdict.BEHAVIOUR
)
def node_anonymous(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        pairs = (("listen", before.listen, after.listen), ("http", before.http, after.http))
        for word, left, right in pairs:
            was, now = (each.anonymous if each else None for each in (left, right))
            if was != now:
                verdict = Verdict.WIDENS if now else None
                text = f"{name} {word} takes calls without proof from {turn(was, now)}"
                yield Found(f"{name} {word}", text, (*path, word, "anonymous"), verdict=verdict)


@kind(
    "node.upstream", "A node finds another by another variable, or another node by it.", Verdict.CONFIGURATION
)
def node_upstream(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        yield from _entries(name, "upstream", before.upstreams, after.upstreams, (*path, "upstreams"))


@kind("node.finds", "A node finds another on the network for another variable.", Verdict.CONFIGURATION)
def node_finds(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        yield from _entries(name, "finds for", before.finds, after.finds, (*path, "finds"))


@kind("node.announced", "A node is announced on its network under another name.", Verdict.BEHAVIOUR)
def node_announced(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        if before.announced != after.announced:
            text = f"{name} is announced: {turn(before.announced, after.announced)}"
            verdict = None if before.announced else Verdict.COMPATIBLE
            yield Found(name, text, (*path, "announced"), verdict=verdict)


@kind("node.default", "A variable has another default on a node.", Verdict.BEHAVIOUR)
def node_default(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        yield from _entries(name, "default", before.defaults, after.defaults, (*path, "defaults"))


@kind("node.on_demand", "A node is started with its deployment, or no longer is.", Verdict.BEHAVIOUR)
def node_on_demand(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        if before.on_demand != after.on_demand:
            said = "is started on demand only" if after.on_demand else "is started with its deployment"
            yield Found(name, f"{name} {said}", (*path, "on_demand"))


@kind("node.unless", "A node leaves out components by other variables.", Verdict.CONFIGURATION)
def node_unless(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        yield from _entries(name, "unless", before.unless, after.unless, (*path, "unless"))


@kind("node.optional", "A port is opened only where its variable says one, or always.", Verdict.CONFIGURATION)
def node_optional(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        for word, left, right in (("listen", before.listen, after.listen), ("http", before.http, after.http)):
            # What came or went altogether is told by its host and port.
            if left and right and left.optional != right.optional:
                said = "opened only where a port is set" if right.optional else "always opened"
                text = f"{name} {word} is {said}"
                yield Found(f"{name} {word}", text, (*path, word, "optional"))


@kind("node.carrier", "Something else carries the gRPC calls of a node.", Verdict.CONFIGURATION)
def node_carrier(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        # What came or went altogether is told by its host and port.
        if before.listen and after.listen and before.listen.carrier != after.listen.carrier:
            text = f"{name} takes gRPC calls by {turn(before.listen.carrier, after.listen.carrier)}"
            yield Found(name, text, (*path, "listen", "carrier"))


@kind("node.healthcheck", "Something else of a node is checked.", Verdict.CONFIGURATION)
def node_healthcheck(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _nodes(old, new):
        if before.healthcheck is None or after.healthcheck is None:
            if before.healthcheck != after.healthcheck:
                said = "is checked" if after.healthcheck else "is not checked any more"
                yield Found(name, f"{name} {said}", path)
            continue
        for word, was, now in words(before.healthcheck, after.healthcheck):
            text = f"{name} healthcheck {word} {turn(was, now)}"
            yield Found(f"{name} {word}", text, (*path, "healthcheck", word))


@kind("routing.added", "Clients have to find the owner of a key.", Verdict.BEHAVIOUR)
def routing_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        if after.routing and not before.routing:
            yield Found(name, f"{name} routes by key", ("deployments", name, "routing"))


@kind("routing.removed", "Clients no longer find the owner of a key.", Verdict.BEHAVIOUR)
def routing_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        if before.routing and not after.routing:
            yield Found(name, f"{name} no longer routes by key", ("deployments", name, "routing"))


@kind("routing.changed", "Clients find the owner of a key in another way.", Verdict.BEHAVIOUR)
def routing_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _deployments(old, new):
        if before.routing and after.routing:
            path = ("deployments", name, "routing")
            yield from _entries(
                name, "routing key of", before.routing.keys, after.routing.keys, (*path, "keys")
            )
            for word, was, now in words(before.routing, after.routing, "keys"):
                yield Found(f"{name} {word}", f"{name} routing {word} {turn(was, now)}", (*path, word))


def _listener(name: str, verb: str, before: Listen | None, after: Listen | None, at: Path) -> Iterator[Found]:
    was, now = (f"{each.host}:{each.port}" if each else "nowhere" for each in (before, after))
    if was != now:
        paths = [
            (*at, "host"),
            (*at, "port"),
            *([] if before and after else [(*at, "optional"), (*at, "carrier")]),
        ]
        yield Found(name, f"{name} {verb} {turn(was, now)}", *paths)


def _deployments(old: Spec, new: Spec) -> Iterator[tuple[str, Deployment, Deployment]]:
    yield from kept(old.deployments.root, new.deployments.root)


def _nodes(old: Spec, new: Spec) -> Iterator[tuple[str, Node, Node, Path]]:
    for name, before, after in _deployments(old, new):
        for node, was, now in kept(before.nodes, after.nodes):
            yield f"{name}.{node}", was, now, ("deployments", name, "nodes", node)


def _entries(
    name: str, what: str, before: Mapping[str, str], after: Mapping[str, str], path: Path
) -> Iterator[Found]:
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            text = f"{name} {what} {key} {turn(before.get(key), after.get(key))}"
            yield Found(f"{name} {key}", text, (*path, key))
