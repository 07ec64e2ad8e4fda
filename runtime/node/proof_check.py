"""Check of credentials before a start: find a node that cannot authenticate its callers, or itself.

Without certificates and tokens such a node would refuse every call, or have every call of its own refused,
which its clients see as a fault of the service.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from runtime.model.system import Deployment, Method, Node, System

_TLS_ROLES = ("tls_certificate", "tls_key", "tls_authority")


class Proofs(Struct, frozen=True):
    """The credentials of a node: its own, and those of callers that it accepts."""

    certificate: bool
    token: bool
    accepted: frozenset[str]
    """The principals whose tokens it accepts."""


def find_missing_proofs(
    system: System, deployment: Deployment, node: Node, proofs: Proofs, *, has_http: bool
) -> list[str]:
    """Find the missing variables without which no call to or from the node can succeed; a sentence each."""
    if proofs.certificate:
        return []
    found: list[str] = []
    if callers := _find_unrecognised(system, node, proofs, has_http=has_http):
        what = "knows none of the principals that may call" if proofs.accepted else "is not set"
        found.append(
            _format_problem(
                *(system, node, "accepted_tokens", what),
                f"{node.name} recognises no caller ({', '.join(callers)}) and would refuse them all",
            )
        )
    if not proofs.token and (refusing := _find_refusing_nodes(system, deployment, node, proofs)):
        found.append(
            _format_problem(
                *(system, node, "caller_token", "is not set"),
                f"{node.name} cannot prove itself to {', '.join(refusing)}, where its calls would be refused",
            )
        )
    return found


def _find_unrecognised(system: System, node: Node, proofs: Proofs, *, has_http: bool) -> list[str]:
    """Find the principals with a permission at a listener where none of them can authenticate."""
    methods = [each for name in node.serves for each in system.services[name].methods]
    listeners: list[tuple[str | None, list[Method]]] = []
    if node.port_variable is not None:
        listeners.append((node.anonymous, methods))
    if node.http is not None and has_http:
        listeners.append((node.http.anonymous, [each for each in methods if each.route is not None]))
    found: dict[str, None] = {}
    for anonymous, offered in listeners:
        allowed = {name: None for each in offered for name in system.matrix.get(each.path, ())}
        accepted = {*proofs.accepted, *_find_anonymous(system, anonymous, proofs)}
        if not accepted & set(allowed):
            found.update(allowed)
    return [name for name in found if system.principals[name].proofs & {"certificate", "token"}]


def _find_refusing_nodes(system: System, deployment: Deployment, node: Node, proofs: Proofs) -> list[str]:
    """Find the upstreams that accept only authenticated callers, as far as the node's own settings say."""
    found: dict[str, None] = {}
    for name, anonymous in _find_upstreams(deployment, node):
        unproven = set(_find_anonymous(system, anonymous, proofs))
        offered = [
            method
            for service in map(system.services.__getitem__, deployment.nodes[name].serves)
            if service.component not in node.hosts
            for method in service.methods
        ]
        for method in offered:
            allowed = set(system.matrix.get(method.path, ()))
            if allowed & set(node.hosts) and not allowed & unproven:
                found[name] = None
    return list(found)


def _find_upstreams(deployment: Deployment, node: Node) -> Iterator[tuple[str, str | None]]:
    """Iterate over the upstreams of a node, each with its principal of calls without proof."""
    for name in node.upstreams.values():
        yield name, deployment.nodes[name].anonymous
    for name in node.finds.values():
        listener = deployment.nodes[name].http
        yield name, listener.anonymous if listener is not None else None


def _find_anonymous(system: System, at_listener: str | None, proofs: Proofs) -> list[str]:
    """Find the principals that a caller without proof may be at a listener."""
    if at_listener is not None:
        return [at_listener]
    return [
        each.name
        for each in system.principals.values()
        if each.anonymous and not (each.without_tokens and proofs.accepted)
    ]


def _format_problem(system: System, node: Node, role: str, what: str, outcome: str) -> str:
    by_token, by_certificate = (
        _find_variables(system, node, (role,)),
        _find_variables(system, node, _TLS_ROLES),
    )
    ways = [_join_names(names) for names in (by_token, by_certificate) if names]
    remedy = f"set {', or '.join(ways)}" if ways else "the spec has no variable that would allow it"
    return f"{', '.join(by_token) or role}: {what}, and TLS is off, so {outcome}; {remedy}"


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _find_variables(system: System, node: Node, roles: Sequence[str]) -> list[str]:
    return [name for role in roles for name in node.variables if system.variables[name].role == role]
