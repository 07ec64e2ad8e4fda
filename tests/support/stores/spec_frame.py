"""The files of a made-up spec beside its lifecycle and its types: as little as the rules let pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runtime.model.lifecycles import Lifecycle, Transition, Update

Data = dict[str, Any]
KEEPER = "keeper"
"""The component that holds every entity."""
_VISITOR = "visitor"
"""A principal that is no component: a node that is open to the outside must serve one."""
LOOKING: Data = {"Looking": {"doc": "Nothing.", "fields": {"name": {"number": 1, "type": "string"}}}}
"""The request and the answer of the one method."""
_ROLES = {
    "invalid_request": ("INVALID_ARGUMENT", 422, "{field}: {problem}"),
    "illegal_transition": ("FAILED_PRECONDITION", 409, "{entity}: {from_state} to {to_state}"),
    "unauthenticated": ("UNAUTHENTICATED", 401, "{method}: {problem}"),
    "permission_denied": ("PERMISSION_DENIED", 403, "{caller}, {method}: {problem}"),
    "lease_lost": ("ABORTED", 409, "{holder} lost {key}"),
    "lease_stale": ("ABORTED", 409, "{key} is stale"),
    "still_held": ("ABORTED", 409, "{key} holds some"),
    "store_full": ("RESOURCE_EXHAUSTED", 429, "full"),
    "store_unavailable": ("UNAVAILABLE", 503, "the store is away"),
    "upstream_unavailable": ("UNAVAILABLE", 503, "{service} is away"),
    "deadline_exceeded": ("DEADLINE_EXCEEDED", 504, "{method} took too long"),
    "unexpected": ("INTERNAL", 500, "a fault: {correlation_id}"),
}


def write_frame(
    system: str, engine: str, lifecycles: tuple[Lifecycle, ...], variables: Mapping[str, Any]
) -> Data:
    """Write system, services, callers, errors, environment and deployments."""
    named = {each for lifecycle in lifecycles for each in _iter_actors(lifecycle)}
    actors = sorted(named - {KEEPER} | {_VISITOR})
    drivers = sorted({each for lifecycle in lifecycles for each in _iter_drivers(lifecycle)} - {KEEPER})
    return {
        "system": _system(system),
        "services": _services(drivers),
        "callers": _callers(actors),
        "errors": _errors(lifecycles),
        "environment": {"variables": {**_environment(engine), **dict(_iter_variables(variables))}},
        "deployments": _deployments(system, drivers),
    }


def _iter_actors(lifecycle: Lifecycle) -> Iterator[str]:
    yield from lifecycle.creators
    yield from lifecycle.deleters
    for change in _list_changes(lifecycle):
        yield from change.actors


def _list_changes(lifecycle: Lifecycle) -> list[Transition | Update]:
    return [*lifecycle.transitions.values(), *lifecycle.updates.values()]


def _iter_drivers(lifecycle: Lifecycle) -> Iterator[str]:
    """The principals of clocks, which are components."""
    changes = _list_changes(lifecycle)
    dues = [lifecycle.deletion_due, *(due for each in changes for due in each.dues)]
    yield from (due.by for due in dues if due)


def _system(name: str) -> Data:
    return {
        "name": name,
        "version": 1,
        "title": "Shop",
        "summary": "A system that a test makes up.",
        "protos": {"book": {"file": f"{name}.proto", "package": f"{name}.v1", "doc": "All types."}},
        "policies": {
            "shutdown": {"grace_ms": 1000},
            "retention": {
                "ended": {"bound": "MAX_TERMINAL", "unit": "records", "of": "terminal", "evicts": "oldest"}
            },
        },
    }


def _services(drivers: list[str]) -> Data:
    return {
        "components": {
            KEEPER: {"serves": ["ShopService"], "owns": "everything"},
            **{name: {"owns": "nothing"} for name in drivers},
        },
        "defaults": {"deadline_ms": 1000},
        "services": {
            "ShopService": {
                "proto": "book",
                "doc": "What can be asked.",
                "methods": {
                    "Look": {
                        "doc": "Looks.",
                        "request": "Looking",
                        "response": "Looking",
                        "idempotency": {"class": "always"},
                    }
                },
            }
        },
    }


def _callers(actors: list[str]) -> Data:
    return {
        "principals": {name: {"proof": ["token"], "doc": "Of a test."} for name in (KEEPER, *actors)},
        "may_call": {name: {"ShopService": ["Look"]} for name in actors},
    }


def _errors(lifecycles: tuple[Lifecycle, ...]) -> Data:
    reasons = {
        take.default
        for lifecycle in lifecycles
        for edge in lifecycle.transitions.values()
        for take in edge.from_request.values()
        if take.default.isupper()
    }
    conditions = {
        f"{role}_here": {
            "role": role,
            "grpc": grpc,
            "http": http,
            "retry": "never",
            "message": message,
            "doc": "Of a test.",
        }
        for role, (grpc, http, message) in _ROLES.items()
    }
    return {
        "conditions": conditions,
        **({"reasons": dict.fromkeys(sorted(reasons), "Of a test.")} if reasons else {}),
    }


def _environment(engine: str) -> Data:
    everyone = {"read_by": "everyone", "doc": "Of a test."}
    tokens = {"type": "digests", "role": "accepted_tokens", **everyone}
    location: dict[str, Data] = {
        "memory": {},
        "postgres": {"DATABASE_URL": {"type": "url", "required": True, **everyone}},
        "redis": {"REDIS_URL": {"type": "url", "required": True, **everyone}},
        "s3": {
            "S3_ENDPOINT": {"type": "url", **everyone},
            "S3_BUCKET": {"type": "string", "default": "shop", **everyone},
            "S3_REGION": {"type": "string", "default": "here", **everyone},
        },
        "sqlite": {"DATABASE_PATH": {"type": "data_path", "default": "shop.db", **everyone}},
    }
    return {
        "SHOP_LOG": {"type": "string", "default": "INFO", **everyone},
        "SHOP_PORT": {"type": "port", "default": 0, "min": 0, **everyone},
        "SHOP_TOKEN": {"type": "secret", "role": "caller_token", **everyone},
        "SHOP_TOKENS": tokens,
        "MAX_TERMINAL": {"type": "int", "default": 0, "min": 0, **everyone},
        **location[engine],
    }


def _iter_variables(variables: Mapping[str, Any]) -> Iterator[tuple[str, Data]]:
    for name, value in variables.items():
        kind = "int" if isinstance(value, int) else "number"
        yield name, {"type": kind, "default": value, "read_by": "everyone", "doc": "Of a test."}


def _deployments(system: str, drivers: list[str]) -> Data:
    return {
        "one": {
            "title": "One node",
            "doc": "Of a test.",
            "transport": "grpc",
            "ingress": ["node"],
            "command": f"python -m runtime.serve {system}.one.{{node}}",
            "healthcheck": {
                "interval": "10s",
                "timeout": "2s",
                "retries": 3,
                "start_period": "5s",
                "timeout_ms": 500,
            },
            "nodes": {
                "node": {
                    "hosts": [KEEPER, *drivers],
                    "listen": {"host": "127.0.0.1", "port": "SHOP_PORT"},
                    "healthcheck": {"mode": "tcp", "target": "127.0.0.1:${SHOP_PORT}"},
                }
            },
        }
    }
