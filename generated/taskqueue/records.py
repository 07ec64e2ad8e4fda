"""The entities of taskqueue that a server stores, as frozen structs.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct as _Struct

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class JobRecord(_Struct, frozen=True, kw_only=True):
    """All that is kept of a job."""

    job_id: str
    status: int = 0
    job_type: str = ""
    created_at_ms: int = 0
    started_at_ms: int = 0
    finished_at_ms: int = 0
    cancel_requested: bool = False
    client_request_id: str = ""
    spec: bytes = b""
    """The JobSpec in deterministic bytes, so that equal ones compare equal."""
    failure_reason: str = ""
    cancel_reason: str = ""


class SubmitKeyRecord(_Struct, frozen=True, kw_only=True):
    """What is kept of the key of a submit."""

    client_request_id: str
    presence: int = 0
    job_id: str = ""
    """The job that the first submit made."""
    remembered_at_ms: int = 0
    """Not the same for any two."""


class EntryRecord(_Struct, frozen=True, kw_only=True):
    """What is kept of a waiting job."""

    job_id: str
    presence: int = 0
    enqueued_at_ms: int = 0
    """Not the same for any two: their order is that of the queue."""


class EnvelopeRecord(_Struct, frozen=True, kw_only=True):
    """What is kept of the result of a job."""

    job_id: str
    presence: int = 0
    terminal_status: int = 0
    runtime_ms: int = 0
    output_summary: str = ""
    output_bytes: bytes = b""
    checksum: str = ""
    stored_at_ms: int = 0
    """Not the same for any two."""
    stored_bytes: int = 0
    """The bytes of this and of all earlier envelopes, also of those that are gone."""
