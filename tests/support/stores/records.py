"""Records of the lifecycles, their states, and the variables that they name."""

from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)
WAITING, HELD, DONE, DEAD, SHELVED = 1, 2, 3, 4, 5
IDLE, GONE = 1, 2
LOW, HIGH = 1, 2
STATES: Final = {WAITING: "WAITING", HELD: "HELD", DONE: "DONE", DEAD: "DEAD", SHELVED: "SHELVED"}

VARIABLES: Final[dict[str, Any]] = {
    "BASE_S": 2.0,
    "MOST_S": 7.0,
    "LONGEST": 20,
    "LOW_LENGTH": 10,
    "HIGH_LENGTH": 5,
    "MOST_WAITING": 3,
    "TICKET_S": 60.0,
    "PROMOTE_S": 30.0,
    "PROMOTE_BATCH": 2,
    "KEEP_S": 100.0,
    "RETENTION_S": 1000.0,
    "LEASE_S": 10.0,
    "GRACE_S": 5.0,
    "MAX_TRIES": 2,
    "EVERY": 1.0,
}


class ErrandRecord(Struct, frozen=True, kw_only=True):
    """Something to be done by a courier, with an urgency."""

    key: str
    state: int = 0
    kind: str = ""
    urgency: int = LOW
    effective: int = 0
    mode: int = 0
    wanted: bool = False
    needs: tuple[str, ...] = ()
    ticket: str | None = None
    tries: int = 0
    limit: int = 2
    length: int | None = None
    first_length: int | None = None
    made_at: datetime = _NEVER
    moved_at: datetime = _NEVER
    begun_at: datetime | None = None
    ended_at: datetime | None = None
    wait_until: datetime | None = None
    ends_at: datetime | None = None
    owner: str | None = None
    fence: int = 0
    result: str | None = None
    error: str | None = None
    first_error: str | None = None
    again: bool | None = None
    why: str | None = None
    progress: int = 0
    remark: str = ""


class CourierRecord(Struct, frozen=True, kw_only=True):
    """Someone who holds errands."""

    name: str
    state: int = 0
    room: int = 2
    skills: tuple[str, ...] = ()
    seen_at: datetime = _NEVER


class ParcelRecord(Struct, frozen=True, kw_only=True):
    """Something whose lease goes by its renewal, with times in milliseconds."""

    key: str
    state: int = 0
    made_at: int = 0
    moved_at: int = 0
    owner: str | None = None
    tries: int = 0
    returns: int = 0
    reason: str | None = None
    ticket: str | None = None


class Policy(Struct, frozen=True, kw_only=True):
    """The backoff of one record."""

    base_ms: int = 1000
    most_ms: int = 9000
    factor: float = 3.0
    jitter: float = 0.0


class LetterRecord(Struct, frozen=True, kw_only=True):
    """Something that waits until a time of its own."""

    key: str
    state: int = 0
    kind: str = ""
    ready_at: datetime = _NEVER
    moved_at: datetime = _NEVER
    ends_at: datetime | None = None
    owner: str | None = None
    token: str | None = None
    fence: int = 0
    tries: int = 0
    limit: int = 2
    length: float = 10.0
    error: str | None = None
    writes: int = 0
    policy: Policy = Policy()


class PermitRecord(Struct, frozen=True, kw_only=True):
    """Something that is given up a step after it has failed."""

    key: str
    state: int = 0
    made_at: datetime = _NEVER
    moved_at: datetime = _NEVER
    wait_until: datetime | None = None
    ends_at: datetime | None = None
    owner: str | None = None
    fence: int = 0
    tries: int = 0
    error: str | None = None
