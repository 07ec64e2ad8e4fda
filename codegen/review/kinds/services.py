"""Differences of services.yaml: components, services and the contracts of methods."""

from __future__ import annotations

import math
from collections.abc import Iterator

from codegen.language.services import Route
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import added, fell, gained, kept, rose, turn, words
from codegen.source.spec import MethodRow, Spec

TOLD = (
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
"""Words of a method that have a kind of their own."""


@kind("component.added", "There is one more component.", Verdict.COMPATIBLE)
def component_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(old.services.components, new.services.components):
        yield Found(name, f"component {name} is added", _component(name))


@kind("component.removed", "A component is gone.", Verdict.BEHAVIOUR)
def component_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.services.components, old.services.components):
        yield Found(name, f"component {name} is removed", _component(name))


@kind("component.serves", "A component offers other services.", Verdict.BEHAVIOUR)
def component_serves(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.services.components, new.services.components):
        path = (*_component(name), "serves")
        for service in gained(before.serves, after.serves):
            yield Found(f"{name} {service}", f"{name} now serves {service}", path, verdict=Verdict.COMPATIBLE)
        for service in gained(after.serves, before.serves):
            yield Found(f"{name} {service}", f"{name} no longer serves {service}", path)


@kind(
    "default.changed",
    "What holds for methods that do not say otherwise is something else.",
    Verdict.BEHAVIOUR,
)
def default_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for word, was, now in words(old.services.defaults, new.services.defaults):
        verdict = Verdict.COMPATIBLE if word == "deadline_ms" and rose(was, now) else None
        path = ("services", "defaults", word)
        yield Found(word, f"the {word} of methods that name none {turn(was, now)}", path, verdict=verdict)


@kind("service.added", "There is one more service.", Verdict.COMPATIBLE)
def service_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, service in added(old.services.services, new.services.services):
        yield Found(name, f"service {name} is added with {', '.join(service.methods)}", _service(name))


@kind("service.removed", "A service is gone.", Verdict.WIRE)
def service_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.services.services, old.services.services):
        yield Found(name, f"service {name} is removed", _service(name))


@kind("service.proto", "A service is in another proto file.", Verdict.WIRE)
def service_proto(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.services.services, new.services.services):
        if before.proto != after.proto:
            text = f"service {name} moves from proto {before.proto} to {after.proto}"
            yield Found(name, text, (*_service(name), "proto"))


@kind("method.added", "A service has one more method.", Verdict.COMPATIBLE)
def method_added(old: Spec, new: Spec) -> Iterator[Found]:
    for service, before, after in kept(old.services.services, new.services.services):
        for name, _ in added(before.methods, after.methods):
            yield Found(f"{service}.{name}", f"method {service}.{name} is added", _method(service, name))


@kind("method.removed", "A service lacks a method.", Verdict.WIRE)
def method_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for service, before, after in kept(old.services.services, new.services.services):
        for name, _ in added(after.methods, before.methods):
            yield Found(f"{service}.{name}", f"method {service}.{name} is removed", _method(service, name))


@kind("method.message", "A method takes or answers another message.", Verdict.WIRE)
def method_message(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        for word, was, now in words(before.method, after.method):
            if word in ("request", "response"):
                old_message, new_message = getattr(before, word), getattr(after, word)
                verdict = Verdict.COMPATIBLE if old_message == new_message else None
                text = f"{ref} {word} {_named(old_message, was)} -> {_named(new_message, now)}"
                yield Found(f"{ref} {word}", text, (*path, word), verdict=verdict)


@kind("method.deadline", "A method has another deadline.", Verdict.BEHAVIOUR)
def method_deadline(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        if before.method.deadline_ms != after.method.deadline_ms:
            shorter = fell(before.deadline_ms, after.deadline_ms)
            verdict = None if shorter else Verdict.COMPATIBLE
            was = _named(f"{before.deadline_ms} ms", before.method.deadline_ms)
            text = f"{ref} deadline {was} -> {_named(f'{after.deadline_ms} ms', after.method.deadline_ms)}"
            yield Found(ref, text, (*path, "deadline_ms"), verdict=verdict)


@kind("method.idempotency", "A repeated call has another effect.", Verdict.BEHAVIOUR)
def method_idempotency(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        for word, was, now in words(before.method.idempotency, after.method.idempotency):
            verdict = Verdict.COMPATIBLE if was == "never" else None
            text = f"{ref} idempotency {word} {turn(was, now)}"
            yield Found(f"{ref} {word}", text, (*path, "idempotency", word), verdict=verdict)


@kind("method.retry", "Callers retry a method otherwise.", Verdict.BEHAVIOUR)
def method_retry(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        if before.method.retry != after.method.retry:
            harmless = before.retry in ("never", after.retry)
            verdict = Verdict.COMPATIBLE if harmless else None
            was = _named(before.retry, before.method.retry)
            text = f"{ref} retry {was} -> {_named(after.retry, after.method.retry)}"
            yield Found(ref, text, (*path, "retry"), verdict=verdict)


@kind("method.limit", "A method takes larger or smaller requests.", Verdict.BEHAVIOUR)
def method_limit(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        if before.method.max_request != after.method.max_request:
            verdict = None if fell(_bytes(old, before), _bytes(new, after)) else Verdict.COMPATIBLE
            was = _named(before.max_request or "none", before.method.max_request)
            text = (
                f"{ref} max_request {was} -> {_named(after.max_request or 'none', after.method.max_request)}"
            )
            yield Found(ref, text, (*path, "max_request"), verdict=verdict)


@kind("method.changed", "A method pages, moves an entity or names its caller otherwise.", Verdict.BEHAVIOUR)
def method_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        for word, was, now in words(before.method, after.method, *TOLD):
            verdict = Verdict.WIDENS if word == "names_caller" and now is None else None
            yield Found(f"{ref} {word}", f"{ref} {word} {turn(was, now)}", (*path, word), verdict=verdict)


@kind("call.added", "A handler may make one more call.", Verdict.WIDENS)
def call_added(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        for callee in gained(before.method.calls, after.method.calls):
            yield Found(f"{ref} {callee}", f"{ref} may also call {callee}", (*path, "calls"))


@kind("call.removed", "A handler may no longer make a call.", Verdict.COMPATIBLE)
def call_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        for callee in gained(after.method.calls, before.method.calls):
            yield Found(f"{ref} {callee}", f"{ref} no longer calls {callee}", (*path, "calls"))


@kind("raise.added", "Callers of a method meet one more condition.", Verdict.BEHAVIOUR)
def raise_added(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        for condition in gained(before.method.raises, after.method.raises):
            yield Found(f"{ref} {condition}", f"{ref} may also raise {condition}", (*path, "raises"))


@kind("raise.removed", "Callers of a method no longer meet a condition.", Verdict.COMPATIBLE)
def raise_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        for condition in gained(after.method.raises, before.method.raises):
            yield Found(f"{ref} {condition}", f"{ref} no longer raises {condition}", (*path, "raises"))


@kind("method.route", "A method is found elsewhere over HTTP.", Verdict.WIRE)
def method_route(old: Spec, new: Spec) -> Iterator[Found]:
    for ref, before, after, path in _methods(old, new):
        was, now = before.method.route, after.method.route
        if was != now:
            routes = turn(*(_route(each) if each else None for each in (was, now)))
            verdict = None if was else Verdict.COMPATIBLE
            yield Found(ref, f"{ref} route {routes}", (*path, "route"), verdict=verdict)


def _route(route: Route) -> str:
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


def _named(value: str, own: object) -> str:
    return value if own is not None else f"{value} (by default)"


def _bytes(spec: Spec, row: MethodRow) -> float:
    variable = spec.environment.variables.get(row.max_request_variable or "")
    if variable is not None and isinstance(variable.default, int):
        return variable.default
    limit = spec.system.policies.limits.get(row.max_request or "")
    return limit.value if limit else math.inf


def _component(name: str) -> Path:
    return ("services", "components", name)


def _service(name: str) -> Path:
    return ("services", "services", name)


def _method(service: str, name: str) -> Path:
    return (*_service(service), "methods", name)


def _methods(old: Spec, new: Spec) -> Iterator[tuple[str, MethodRow, MethodRow, Path]]:
    for ref, before, after in kept(old.methods, new.methods):
        yield ref, before, after, _method(before.service_name, before.name)
