"""The gRPC service config, for clients in languages that no typed client is generated for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from codegen.emit.artefact import Artefact
from codegen.emit.python.policy import retry_when_set
from codegen.language.system import RetryProfile
from codegen.source.spec import MethodRow, Spec

MOST_ATTEMPTS = 5
"""gRPC cuts a larger number down to this."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """Deadlines and retries of every method, as near as the format comes to them.

    The format knows no condition on the request, so a retry that depends on one is left to the client; and it
    jitters by a fifth, whatever the spec asks for.
    """
    config = {"methodConfig": [_method(spec, row) for row in spec.methods.values()]}
    text = json.dumps(config, indent=2) + "\n"
    yield Artefact(f"generated/{spec.name}/deploy/service_config.json", text)


def _method(spec: Spec, row: MethodRow) -> dict[str, Any]:
    package = spec.system.protos[row.service.proto].package
    found: dict[str, Any] = {
        "name": [{"service": f"{package}.{row.service_name}", "method": row.name}],
        "timeout": _seconds(row.deadline_ms),
    }
    profile = spec.system.policies.retry.get(row.retry)
    if profile and profile.attempts > 1 and retry_when_set(row) is None:
        found["retryPolicy"] = _retry(profile)
    return found


def _retry(profile: RetryProfile) -> dict[str, Any]:
    return {
        "maxAttempts": min(profile.attempts, MOST_ATTEMPTS),
        "initialBackoff": _seconds(profile.initial_ms),
        "maxBackoff": _seconds(profile.max_ms),
        "backoffMultiplier": profile.multiplier,
        "retryableStatusCodes": list(profile.codes),
    }


def _seconds(milliseconds: int) -> str:
    """`1500` -> `1.5s`."""
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}".rstrip("0").rstrip(".") + "s"
