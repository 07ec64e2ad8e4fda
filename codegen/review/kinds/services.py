"""Differences of services.yaml: components, services and the contracts of methods."""

from __future__ import annotations

import math
from collections.abc import Iterator

from codegen.language.services import Route
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import (
    format_change,
    is_higher,
    is_lower,
    iter_added,
    iter_changed_keys,
    iter_common,
    list_gained,
)
from codegen.source.spec import MethodRow, Spec

KEYS_WITH_KINDS = (
    "request",
    "response",
    "deadline_ms",
    "idempotency",
    "retry",
    "max_request",
    "calls",
    "raises",
    "route",
)
"""Keys of a method that have a kind of their own."""


@kind("component.added", "There is one more component.", Verdict.COMPATIBLE)
def find_component_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(old.services.components, new.services.components):
        yield SpecChange(name, f"component {name} is added", _get_component_path(name))


@kind("component.removed", "A component is gone.", Verdict.BEHAVIOUR)
def find_component_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.services.components, old.services.components):
        yield SpecChange(name, f"component {name} is removed", _get_component_path(name))


@kind("component.serves", "A component offers other services.", Verdict.BEHAVIOUR)
def find_component_serves(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.services.components, new.services.components):
        path = (*_get_component_path(name), "serves")
        for service in list_gained(before.serves, after.serves):
            yield SpecChange(
                f"{name} {service}", f"{name} now serves {service}", path, verdict=Verdict.COMPATIBLE
            )
        for service in list_gained(after.serves, before.serves):
            yield SpecChange(f"{name} {service}", f"{name} no longer serves {service}", path)


@kind(
    "default.changed",
    "Another default applies to methods that do not set a value.",
    Verdict.BEHAVIOUR,
)
def find_default_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for word, was, now in iter_changed_keys(old.services.defaults, new.services.defaults):
        verdict = Verdict.COMPATIBLE if word == "deadline_ms" and is_higher(was, now) else None
        path = ("services", "defaults", word)
        yield SpecChange(
            word, f"the {word} of methods that name none {format_change(was, now)}", path, verdict=verdict
        )


@kind("service.added", "There is one more service.", Verdict.COMPATIBLE)
def find_service_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, service in iter_added(old.services.services, new.services.services):
        yield SpecChange(
            name, f"service {name} is added with {', '.join(service.methods)}", _get_service_path(name)
        )


@kind("service.removed", "A service is gone.", Verdict.WIRE)
def find_service_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.services.services, old.services.services):
        yield SpecChange(name, f"service {name} is removed", _get_service_path(name))


@kind("service.proto", "A service is in another proto file.", Verdict.WIRE)
def find_service_proto(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.services.services, new.services.services):
        if before.proto != after.proto:
            text = f"service {name} moves from proto {before.proto} to {after.proto}"
            yield SpecChange(name, text, (*_get_service_path(name), "proto"))


@kind("method.added", "A service has one more method.", Verdict.COMPATIBLE)
def find_method_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for service, before, after in iter_common(old.services.services, new.services.services):
        for name, _ in iter_added(before.methods, after.methods):
            yield SpecChange(
                f"{service}.{name}", f"method {service}.{name} is added", _get_method_path(service, name)
            )


@kind("method.removed", "A service lacks a method.", Verdict.WIRE)
def find_method_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for service, before, after in iter_common(old.services.services, new.services.services):
        for name, _ in iter_added(after.methods, before.methods):
            yield SpecChange(
                f"{service}.{name}", f"method {service}.{name} is removed", _get_method_path(service, name)
            )


@kind("method.message", "A method takes or answers another message.", Verdict.WIRE)
def find_method_message(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        for word, was, now in iter_changed_keys(before.method, after.method):
            if word in ("request", "response"):
                old_message, new_message = getattr(before, word), getattr(after, word)
                verdict = Verdict.COMPATIBLE if old_message == new_message else None
                text = f"{ref} {word} {_format_named(old_message, was)} -> {_format_named(new_message, now)}"
                yield SpecChange(f"{ref} {word}", text, (*path, word), verdict=verdict)


@kind("method.deadline", "A method has another deadline.", Verdict.BEHAVIOUR)
def find_method_deadline(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        if before.method.deadline_ms != after.method.deadline_ms:
            shorter = is_lower(before.deadline_ms, after.deadline_ms)
            verdict = None if shorter else Verdict.COMPATIBLE
            was = _format_named(f"{before.deadline_ms} ms", before.method.deadline_ms)
            now = _format_named(f"{after.deadline_ms} ms", after.method.deadline_ms)
            text = f"{ref} deadline {was} -> {now}"
            yield SpecChange(ref, text, (*path, "deadline_ms"), verdict=verdict)


@kind("method.idempotency", "A repeated call has another effect.", Verdict.BEHAVIOUR)
def find_method_idempotency(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        for word, was, now in iter_changed_keys(before.method.idempotency, after.method.idempotency):
            verdict = Verdict.COMPATIBLE if was == "never" else None
            text = f"{ref} idempotency {word} {format_change(was, now)}"
            yield SpecChange(f"{ref} {word}", text, (*path, "idempotency", word), verdict=verdict)


@kind("method.retry", "A method has another retry profile.", Verdict.BEHAVIOUR)
def find_method_retry(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        if before.method.retry != after.method.retry:
            harmless = before.retry in ("never", after.retry)
            verdict = Verdict.COMPATIBLE if harmless else None
            was = _format_named(before.retry, before.method.retry)
            text = f"{ref} retry {was} -> {_format_named(after.retry, after.method.retry)}"
            yield SpecChange(ref, text, (*path, "retry"), verdict=verdict)


@kind("method.limit", "A method takes larger or smaller requests.", Verdict.BEHAVIOUR)
def find_method_limit(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        if before.method.max_request != after.method.max_request:
            verdict = (
                None
                if is_lower(_get_max_bytes(old, before), _get_max_bytes(new, after))
                else Verdict.COMPATIBLE
            )
            was = _format_named(before.max_request or "none", before.method.max_request)
            now = _format_named(after.max_request or "none", after.method.max_request)
            text = f"{ref} max_request {was} -> {now}"
            yield SpecChange(ref, text, (*path, "max_request"), verdict=verdict)


@kind(
    "method.changed", "A method has another pagination, entity to drive or caller field.", Verdict.BEHAVIOUR
)
def find_method_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        for word, was, now in iter_changed_keys(before.method, after.method, *KEYS_WITH_KINDS):
            verdict = Verdict.WIDENS if word == "names_caller" and now is None else None
            yield SpecChange(
                f"{ref} {word}", f"{ref} {word} {format_change(was, now)}", (*path, word), verdict=verdict
            )


@kind("call.added", "A handler may make one more call.", Verdict.WIDENS)
def find_call_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        for callee in list_gained(before.method.calls, after.method.calls):
            yield SpecChange(f"{ref} {callee}", f"{ref} may also call {callee}", (*path, "calls"))


@kind("call.removed", "A handler may no longer make a call.", Verdict.COMPATIBLE)
def find_call_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        for callee in list_gained(after.method.calls, before.method.calls):
            yield SpecChange(f"{ref} {callee}", f"{ref} no longer calls {callee}", (*path, "calls"))


@kind("raise.added", "A method may raise one more condition.", Verdict.BEHAVIOUR)
def find_raise_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        for condition in list_gained(before.method.raises, after.method.raises):
            yield SpecChange(f"{ref} {condition}", f"{ref} may also raise {condition}", (*path, "raises"))


@kind("raise.removed", "A method no longer raises a condition.", Verdict.COMPATIBLE)
def find_raise_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        for condition in list_gained(after.method.raises, before.method.raises):
            yield SpecChange(f"{ref} {condition}", f"{ref} no longer raises {condition}", (*path, "raises"))


@kind("method.route", "A method has another HTTP route.", Verdict.WIRE)
def find_method_route(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for ref, before, after, path in _iter_methods(old, new):
        was, now = before.method.route, after.method.route
        if was != now:
            routes = format_change(*(_format_route(each) if each else None for each in (was, now)))
            verdict = None if was else Verdict.COMPATIBLE
            yield SpecChange(ref, f"{ref} route {routes}", (*path, "route"), verdict=verdict)


def _format_route(route: Route) -> str:
    usual = Route.model_fields["status"].default
    others = "".join(
        f" ({each.status} if {each.if_set or each.if_unset} is {'set' if each.if_set else 'not set'})"
        for each in route.instead
    )
    bodies = "".join(
        f" ({what} is {field})"
        for what, field in (("the body", route.body), ("the answer", route.answer))
        if field is not None
    )
    status = f" ({route.status})" if route.status != usual else ""
    return f"{route.method} {route.path}{bodies}{status}{others}"


def _format_named(value: str, own: object) -> str:
    return value if own is not None else f"{value} (by default)"


def _get_max_bytes(spec: Spec, row: MethodRow) -> float:
    variable = spec.environment.variables.get(row.max_request_variable or "")
    if variable is not None and isinstance(variable.default, int):
        return variable.default
    limit = spec.system.policies.limits.get(row.max_request or "")
    return limit.value if limit else math.inf


def _get_component_path(name: str) -> Path:
    return ("services", "components", name)


def _get_service_path(name: str) -> Path:
    return ("services", "services", name)


def _get_method_path(service: str, name: str) -> Path:
    return (*_get_service_path(service), "methods", name)


def _iter_methods(old: Spec, new: Spec) -> Iterator[tuple[str, MethodRow, MethodRow, Path]]:
    for ref, before, after in iter_common(old.methods, new.methods):
        yield ref, before, after, _get_method_path(before.service_name, before.name)
