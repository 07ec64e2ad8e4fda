"""gRPC service config, for clients in languages without a generated typed client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from codegen.emit.artefact import Artefact
from codegen.emit.python.policy import find_retry_key
from codegen.language.system import RetryProfile
from codegen.source.spec import MethodRow, Spec

MOST_ATTEMPTS = 5
"""The upper limit of gRPC, which reduces a larger number to this."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """Emit deadlines and retries of every method, as far as the format can express them.

    The format has no condition on the request, so a retry that depends on one is left to the client; and its
    jitter is always a fifth, whatever the spec says.
    """
    config = {"methodConfig": [_build_method_config(spec, row) for row in spec.methods.values()]}
    text = json.dumps(config, indent=2) + "\n"
    yield Artefact(f"generated/{spec.name}/deploy/service_config.json", text)


def _build_method_config(spec: Spec, row: MethodRow) -> dict[str, Any]:
    package = spec.system.protos[row.service.proto].package
    found: dict[str, Any] = {
        "name": [{"service": f"{package}.{row.service_name}", "method": row.name}],
        "timeout": _format_seconds(row.deadline_ms),
    }
    profile = spec.system.policies.retry.get(row.retry)
    if profile and profile.attempts > 1 and find_retry_key(row) is None:
        found["retryPolicy"] = _build_retry_policy(profile)
    return found


def _build_retry_policy(profile: RetryProfile) -> dict[str, Any]:
    return {
        "maxAttempts": min(profile.attempts, MOST_ATTEMPTS),
        "initialBackoff": _format_seconds(profile.initial_ms),
        "maxBackoff": _format_seconds(profile.max_ms),
        "backoffMultiplier": profile.multiplier,
        "retryableStatusCodes": list(profile.codes),
    }


def _format_seconds(milliseconds: int) -> str:
    """Format `1500` as `1.5s`."""
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}".rstrip("0").rstrip(".") + "s"
