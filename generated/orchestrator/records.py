"""The entities of orchestrator that a server stores, as frozen structs.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct as _Struct

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class JobRecord(_Struct, frozen=True, kw_only=True):
    """One job intent and all that became of it."""

    job_id: str
    job_type: str = ""
    payload: str = ""
    idempotency_key: str = ""
    state: int = 0
    retry_count: int = 0
    """Failures so far, lost leases included."""
    attempt: int = 0
    """Acquisitions so far. It fences the writes of earlier holders."""
    lease_owner: str | None = None
    lease_expiry: datetime | None = None
    next_attempt_at: datetime | None = None
    created_at: datetime = _NEVER
    updated_at: datetime = _NEVER
    result: str | None = None
    last_error: str | None = None
