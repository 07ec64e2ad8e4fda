"""The guard in front of every handler: the caller matrix, then the rules of the request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from runtime.call.conditions import Condition
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import Method, Permission, System

Admit = Callable[[str, Any], None]
"""Takes the authenticated caller and the request; raises a condition, or normalises the request."""


class Guard:
    """The guard of a system. Its checks are compiled for each method when a node starts."""

    def __init__(self, system: System) -> None:
        self._system = system

    def compile(self, method: Method) -> Admit:
        """Compile the checks of a method into one function: caller, permission, then request."""
        permissions = {
            principal: _compile_condition(permission)
            for principal, permission in self._system.matrix.get(method.path, {}).items()
        }
        check, settle, names_caller = method.check, method.settle, method.names_caller
        max_bytes = method.max_request_bytes
        drives = self._compile_edge_check(method)
        deny, refuse = self._find_condition("permission_denied"), self._find_condition("invalid_request")
        too_large = self._make_size_refusal(max_bytes)
        unproven, name = self._find_condition("unauthenticated"), str(method)
        anonymous = {each.name for each in self._system.principals.values() if each.anonymous}

        def admit(caller: str, request: Any) -> None:
            try:
                permitted = permissions[caller]
            except KeyError:
                if caller in anonymous:
                    raise unproven(method=name, problem="no certificate and no token") from None
                raise deny(caller=caller, method=name, problem="it is not in the caller matrix") from None
            if permitted is not None and (problem := permitted(request)):
                raise deny(caller=caller, method=name, problem=problem)
            if names_caller is not None and getattr(request, names_caller) != caller:
                raise deny(caller=caller, method=name, problem=f"{names_caller} must name the caller itself")
            if drives is not None:
                drives(caller, request)
            if max_bytes is not None and (size := request.ByteSize()) > max_bytes:
                raise too_large(size)
            if check is not None and (found := check(request)):
                raise refuse(
                    field=found[0].field, problem="; ".join([found[0].problem, *map(str, found[1:])])
                )
            if settle is not None:
                settle(request)

        return admit

    def _make_size_refusal(self, max_bytes: int | None) -> Callable[[int], Condition]:
        """Make the refusal of a request that is too large; the condition is that of a body over HTTP."""
        found = self._system.roles.get("body_too_large")
        if found is None:
            refuse = self._find_condition("invalid_request")
            return lambda size: refuse(
                field="request", problem=f"must have at most {max_bytes} bytes, not {size}"
            )
        make: Callable[..., Condition] = found
        given = {"limit": str(max_bytes)} if "limit" in inspect.signature(found).parameters else {}
        return lambda _size: make(**given)

    def _compile_edge_check(self, method: Method) -> Callable[[str, Any], None] | None:
        """Compile the check that refuses edges which the lifecycle does not have, before any lookup."""
        drive = method.drive
        if drive is None:
            return None
        lifecycle = self._system.lifecycles[drive.entity]
        deny, name = self._find_condition("permission_denied"), str(method)

        def check(caller: str, request: Any) -> None:
            source, target = getattr(request, drive.source_field), getattr(request, drive.target_field)
            edge = require_edge(self._system.roles, lifecycle, caller, name, source, target)
            if edge.via != name:
                raise deny(caller=caller, method=name, problem=f"{edge.name} goes through {edge.via} alone")

        return check

    def _find_condition(self, role: str) -> Callable[..., Condition]:
        return self._system.roles[role]


def require_edge(
    roles: Mapping[str, type[Condition]],
    lifecycle: Lifecycle,
    actor: str,
    what: str,
    source: int,
    target: int,
    name: str = "",
) -> Transition:
    """Return the edge between two states, or the one of a name; raises unless this actor may drive it.

    A named edge is also found without its name, by an actor that may not drive the other edge between its
    states.
    """
    edge = lifecycle.edges.get((source, target))
    for each in lifecycle.by_name:
        if source not in each.sources or each.target != target:
            continue
        is_other = not name and each.by_name and actor in each.actors
        if each.name == name or (is_other and not (edge and actor in edge.actors)):
            edge = each
            break
    if edge is None:
        illegal: Callable[..., Condition] = roles["illegal_transition"]
        raise illegal(
            entity=lifecycle.entity,
            from_state=lifecycle.states.get(source, str(source)),
            to_state=lifecycle.states.get(target, str(target)),
        )
    if actor not in edge.actors:
        denied: Callable[..., Condition] = roles["permission_denied"]
        raise denied(
            caller=actor,
            method=what,
            problem=f"only {_join_names(edge.actors)} may {edge.name} a {lifecycle.entity}",
        )
    return edge


def _compile_condition(permission: Permission) -> Callable[[Any], str] | None:
    """Compile the condition of a permission into a function that returns the problem."""
    if not permission.only:
        return None
    wanted = tuple(permission.only.items())

    def problem(request: Any) -> str:
        for field, value in wanted:
            if getattr(request, field) != value:
                return f"its permission holds only for {field} = {value}"
        return ""

    return problem


def _join_names(names: frozenset[str]) -> str:
    return " or ".join(sorted(names))
