"""Lifecycles of no system, which have every word between them."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from runtime.model.lifecycles import (
    Backoff,
    Ceiling,
    DeadLetter,
    Default,
    Due,
    Holder,
    Index,
    Lease,
    Lifecycle,
    Multiplier,
    Take,
    Transition,
    Update,
)
from runtime.stores.layouts.postgres import KeptInPostgres
from runtime.stores.layouts.redis import KeptInRedis, Remembered
from tests.support.stores.records import (
    DEAD,
    DONE,
    GONE,
    HELD,
    HIGH,
    IDLE,
    LOW,
    SHELVED,
    STATES,
    WAITING,
    CourierRecord,
    ErrandRecord,
    LetterRecord,
    ParcelRecord,
    PermitRecord,
)


def edge(name: str, source: int, target: int, *actors: str, **words: Any) -> Transition:
    """An edge with some words."""
    return Transition(name=name, source=source, target=target, actors=frozenset(actors), via=None, **words)


def lifecycle(entity: str, record: type[Any], edges: list[Transition], **words: Any) -> Lifecycle:
    """A lifecycle with some words; what is not said is as it is most often."""
    usual: dict[str, Any] = {
        "holder": "keeper",
        "key": "key",
        "status": "state",
        "states": STATES,
        "initial": WAITING,
        "terminal": frozenset({DONE, SHELVED}),
        "creators": frozenset({"client"}),
        "creation_stamps": ("made_at", "moved_at"),
        "listed_by": "moved_at",
        "retained_by": None,
        "deletable": frozenset(),
        "deleters": frozenset(),
        "edges": _edges_by_ends(edges),
        "by_name": tuple(each for each in edges if each.by_name),
        "record": record,
    }
    return Lifecycle(entity=entity, **usual | words)


def _edges_by_ends(edges: list[Transition]) -> dict[tuple[int, int], Transition]:
    """By source and target: the edge that is meant where no name is said."""
    found: dict[tuple[int, int], Transition] = {}
    for each in sorted(edges, key=lambda each: each.by_name):
        for source in (each.source, *sorted(each.others)):
            found.setdefault((source, each.target), each)
    return found


def with_edges(lifecycle: Lifecycle, *edges: Transition) -> Lifecycle:
    """A lifecycle with further edges, or with others of the same names."""
    names = {each.name for each in edges}
    kept = {ends: each for ends, each in lifecycle.edges.items() if each.name not in names}
    return replace(lifecycle, edges={**kept, **{(s, e.target): e for e in edges for s in e.sources}})


def kept_with(**words: Any) -> KeptInRedis:
    """The words that the tables have beside the names of an engine."""
    return KeptInRedis(url="", prefix=None, hash="", sequence="", **words)


ERRAND: Final = lifecycle(
    "errand",
    ErrandRecord,
    [
        edge("claim", WAITING, HELD, "runner", stamps=("begun_at", "moved_at"), clear=("error",)),
        edge(
            "finish",
            HELD,
            DONE,
            "runner",
            stamps=("ended_at", "moved_at"),
            from_request={"result": Take("result")},
            clear=("error",),
        ),
        edge(
            "retry",
            HELD,
            WAITING,
            *("runner", "reaper"),
            stamps=("moved_at",),
            from_request={
                "error": Take("error", default="unknown"),
                "first_error": Take("error", keep_first=True),
                "again": Take("again"),
            },
            copy={"effective": "urgency"},
            clear=("begun_at",),
            multiply={"length": Multiplier(times=1.5, max="LONGEST")},
            increment="tries",
            backoff=Backoff(until="wait_until", count="tries", base="BASE_S", max="MOST_S"),
            dead_letter=DeadLetter("bury", count="tries", limit="limit"),
            dues=(
                Due(at="ends_at", by="reaper", every="EVERY", values={"error": "{owner} ran out of time"}),
                Due(at=None, by="reaper", every="EVERY", holder_in=GONE, values={"error": "lost"}),
            ),
            reason="reason",
        ),
        edge("give_back", HELD, WAITING, "runner", by_name=True, stamps=("moved_at",)),
        edge(
            "bury",
            HELD,
            DEAD,
            *("runner", "reaper"),
            stamps=("ended_at", "moved_at"),
            sets={"why": "tried too often"},
            from_request={"error": Take("error")},
        ),
        edge("abort", HELD, SHELVED, "client", stamps=("ended_at", "moved_at")),
        edge("cancel", WAITING, SHELVED, "client", where={"mode": 0}, stamps=("moved_at",)),
        edge("skip", WAITING, DONE, "client", when=("wanted",), where={"mode": 1}, stamps=("moved_at",)),
        edge(
            "revive",
            DEAD,
            WAITING,
            "admin",
            stamps=("made_at", "moved_at"),
            sets={"tries": 0},
            copy={"length": "first_length"},
            clear=("error", "why", "owner", "ended_at"),
        ),
    ],
    updates={
        "promote": Update(
            name="promote",
            states=frozenset({WAITING}),
            actors=frozenset({"promoter"}),
            where={"effective": LOW},
            sets={"effective": HIGH},
            dues=(Due(at="made_at", by="promoter", every="EVERY", after="PROMOTE_S", batch="PROMOTE_BATCH"),),
        ),
        "release": Update(
            name="release",
            states=frozenset({WAITING}),
            actors=frozenset({"sweeper"}),
            clear=("wait_until",),
            dues=(Due(at="wait_until", by="sweeper", every="EVERY"),),
        ),
        "advance": Update(
            name="advance",
            states=frozenset({HELD}),
            actors=frozenset({"runner"}),
            stamps=("moved_at",),
            from_request={"progress": Take("progress")},
            fenced=True,
        ),
    },
    lease=Lease(
        state=HELD,
        owner="owner",
        expires="ends_at",
        fence="fence",
        seconds="length",
        oldest_by="made_at",
        index="waiting",
        claim_order=(HIGH, LOW),
        holder=Holder(
            entity="courier",
            states=frozenset({IDLE}),
            capacity="room",
            offers="skills",
            needs="needs",
            booked="held",
        ),
        keeps_owner=True,
    ),
    storage=kept_with(
        expires="RETENTION_S",
        unique={"ticket": Remembered(key="", seconds="TICKET_S")},
        indexes={
            "waiting": Index(key="queue:{effective}", states=frozenset({WAITING}), only_unless="wait_until")
        },
    ),
    copy={"effective": "urgency", "first_length": "length"},
    defaults={"length": Default(by="urgency", of={LOW: "LOW_LENGTH", HIGH: "HIGH_LENGTH"})},
    ceiling=Ceiling(index="waiting", max="MOST_WAITING"),
    deletable=frozenset({DEAD}),
    deleters=frozenset({"admin", "sweeper"}),
    deletion_due=Due(at="ended_at", by="sweeper", every="EVERY", after="KEEP_S"),
)

COURIER: Final = lifecycle(
    "courier",
    CourierRecord,
    [edge("lose", IDLE, GONE, "reaper", stamps=("seen_at",))],
    key="name",
    states={IDLE: "IDLE", GONE: "GONE"},
    initial=IDLE,
    terminal=frozenset({GONE}),
    creation_stamps=("seen_at",),
    listed_by="seen_at",
    deletable=frozenset({IDLE}),
    deleters=frozenset({"client"}),
    unless_holding="errand",
    updates={
        "beat": Update(
            name="beat", states=frozenset({IDLE}), actors=frozenset({"runner"}), stamps=("seen_at",)
        )
    },
)

PARCEL: Final = lifecycle(
    "parcel",
    ParcelRecord,
    [
        edge("claim", WAITING, HELD, "runner", "keeper", stamps=("moved_at",)),
        edge("finish", HELD, DONE, "runner", stamps=("moved_at",), from_request={"reason": Take("reason")}),
        edge(
            "abandon",
            HELD,
            WAITING,
            *("keeper", "runner"),
            stamps=("moved_at",),
            increment="tries",
            dead_letter=DeadLetter("write_off", count="tries", less="returns", limit="MAX_TRIES"),
            dues=(
                Due(
                    at="moved_at",
                    by="keeper",
                    every="EVERY",
                    after="LEASE_S",
                    on_access=True,
                    grace="GRACE_S",
                ),
            ),
        ),
        edge("release", HELD, WAITING, "runner", by_name=True, stamps=("moved_at",), increment="returns"),
        edge(
            "write_off",
            HELD,
            DEAD,
            *("keeper", "runner"),
            stamps=("moved_at",),
            increment="tries",
            clear=("owner",),
            from_request={"reason": Take("reason", default="ABANDONED")},
        ),
    ],
    lease=Lease(
        state=HELD,
        owner="owner",
        expires="",
        renewed="moved_at",
        fence="tries",
        seconds="LEASE_S",
        oldest_by="made_at",
        keeps_owner=True,
    ),
    storage=KeptInPostgres(store="", url="", table="", history="", unique=("ticket",)),
    terminal=frozenset({DONE, DEAD}),
    deletable=frozenset({DONE, DEAD}),
    deleters=frozenset({"client"}),
)

LETTER: Final = lifecycle(
    "letter",
    LetterRecord,
    [
        edge("claim", WAITING, HELD, "runner", stamps=("moved_at",)),
        edge("finish", HELD, DONE, "runner", stamps=("moved_at",)),
        edge(
            "retry",
            HELD,
            WAITING,
            *("runner", "reaper"),
            stamps=("moved_at",),
            increment="tries",
            backoff=Backoff(
                until="ready_at",
                count="tries",
                base="policy.base_ms",
                max="policy.most_ms",
                times="policy.factor",
                jitter="policy.jitter",
            ),
            dead_letter=DeadLetter("fail", count="tries", limit="limit"),
            dues=(Due(at="ends_at", by="reaper", every="EVERY", after="GRACE_S"),),
            from_request={"error": Take("error")},
        ),
        edge("release", HELD, WAITING, "runner", by_name=True, stamps=("ready_at", "moved_at")),
        edge(
            "fail",
            HELD,
            DEAD,
            "runner",
            "reaper",
            stamps=("moved_at",),
            from_request={"error": Take("error")},
        ),
        edge("cancel", WAITING, DEAD, "client", by_name=True, stamps=("moved_at",), others=frozenset({HELD})),
    ],
    creation_stamps=("ready_at", "moved_at"),
    terminal=frozenset({DONE, DEAD}),
    revision="writes",
    lease=Lease(
        state=HELD,
        owner="owner",
        expires="ends_at",
        fence="fence",
        seconds="length",
        oldest_by="ready_at",
        token="token",
        only="kind",
    ),
)

PERMIT: Final = lifecycle(
    "permit",
    PermitRecord,
    [
        edge("claim", WAITING, HELD, "runner", stamps=("moved_at",)),
        edge("finish", HELD, DONE, "runner", stamps=("moved_at",)),
        edge(
            "fail",
            HELD,
            SHELVED,
            *("runner", "reaper"),
            stamps=("moved_at",),
            increment="tries",
            from_request={"error": Take("error", default="EXPIRED")},
            backoff=Backoff(until="wait_until", count="tries", base="BASE_S", max="MOST_S"),
            dead_letter=DeadLetter("bury", count="tries", limit="MAX_TRIES"),
            dues=(Due(at="ends_at", by="reaper", every="EVERY"),),
        ),
        edge("give_back", HELD, SHELVED, "runner", by_name=True, stamps=("moved_at",)),
        edge(
            "requeue",
            SHELVED,
            WAITING,
            "scheduler",
            stamps=("moved_at",),
            dead_letter=DeadLetter("bury", count="tries", limit="MAX_TRIES"),
            dues=(Due(at="wait_until", by="scheduler", every="EVERY"),),
        ),
        edge("bury", SHELVED, DEAD, "runner", "reaper", "scheduler", stamps=("moved_at",)),
    ],
    terminal=frozenset({DONE, DEAD}),
    lease=Lease(
        state=HELD,
        owner="owner",
        expires="ends_at",
        fence="fence",
        seconds="LEASE_S",
        oldest_by="made_at",
    ),
)

ALL: Final = (ERRAND, COURIER, PARCEL, LETTER, PERMIT)
