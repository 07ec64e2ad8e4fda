"""The entities of queuey that a server stores, as frozen structs.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct as _Struct

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class JobRecord(_Struct, frozen=True, kw_only=True):
    """A job and all that is kept of it."""

    job_id: str
    binary_addr: str = ""
    input_addr: str | None = None
    created_at: int = 0
    updated_at: int = 0
    completed_at: int | None = None
    status: int = 0
    run_attempts: int = 0
    runner_id: str | None = None
    output_addr: str | None = None
    idempotency_key: str | None = None
    stderr_addr: str | None = None
    exit_code: int | None = None
    reason: str | None = None
    releases: int = 0
    """How often a runner that was stopped gave it back."""
