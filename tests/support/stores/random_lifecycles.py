"""Lifecycles that no spec has: words drawn at random, within what a lifecycle may be."""

from datetime import UTC, datetime
from random import Random
from typing import Any

from msgspec import Struct
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
    Overrides,
    Take,
    Transition,
    Update,
)
from runtime.stores.layouts.redis import Remembered
from tests.support.stores.lifecycles import edge, kept_with, lifecycle
from tests.support.stores.records import GONE, IDLE, Policy

_NEVER = datetime(1, 1, 1, tzinfo=UTC)
ACTORS = ("client", "runner", "reaper")
VARIABLES = {
    "SHORT_S": 1.5,
    "LONG_S": 6.0,
    "NONE_S": 0.0,
    "MOST": 40,
    "FEW": 2,
    "BATCH": 2,
    "GRACE_S": 3.0,
    "EVERY": 1.0,
    "CEILING": 4,
    "RETENTION_S": 25.0,
}
_LENGTHS = ("SHORT_S", "LONG_S", "NONE_S")


class AnyRecord(Struct, frozen=True, kw_only=True):
    """A record with a field for every word."""

    key: str
    state: int = 0
    rank: int = 1
    mode: int = 0
    is_set: bool = False
    needs: tuple[str, ...] = ()
    ticket: str | None = None
    kind: str = ""
    made_at: datetime = _NEVER
    moved_at: datetime = _NEVER
    marked_at: datetime | None = None
    marked_ms: int = 0
    until: datetime | None = None
    ends_at: datetime | None = None
    owner: str | None = None
    token: str | None = None
    fence: int = 0
    count: int = 0
    spared: int = 0
    limit: int = 1
    length: int | None = None
    other: int = 0
    spare: int = 0
    text: str | None = None
    first_text: str = ""
    number: int = 0
    flag: bool | None = None
    remark: str = ""
    writes: int = 0
    policy: Policy = Policy()


def draw_lifecycle(rng: Random) -> Lifecycle:
    """Draw states, edges and words."""
    states = {number: f"S{number}" for number in range(1, rng.randint(3, 6) + 1)}
    pairs = [(source, target) for source in states for target in states if source != target]
    chosen = rng.sample(pairs, min(len(pairs), rng.randint(3, 9)))
    leased = rng.choice([target for _, target in chosen]) if rng.random() < 0.75 else None
    index = _draw_index(rng, states) if rng.random() < 0.6 else None
    waits = rng.random() < 0.5
    edges = [
        _draw_edge(rng, f"e{number}", source, target, leased, waits=waits)
        for number, (source, target) in enumerate(chosen)
    ]
    twins = rng.sample(chosen, rng.randint(0, 2))
    edges += [
        _draw_edge(rng, f"n{number}", source, target, leased, waits=waits, by_name=True)
        for number, (source, target) in enumerate(twins)
    ]
    edges = _give_up(rng, _leave_more(rng, edges, states, leased))
    left = {state for each in edges for state in each.sources}
    deletable = frozenset(rng.sample(sorted(states), rng.randint(0, 2)))
    initial, *further = rng.sample(sorted(left), len(left))
    begins = frozenset(further[: rng.randint(0, 2)]) - {leased} if rng.random() < 0.3 else frozenset()
    words: dict[str, Any] = {
        "states": states,
        "initial": initial,
        "begins": begins,
        "terminal": frozenset(states) - left,
        "resting": _find_resting(rng, edges, left, leased),
        "creators": frozenset({"client"}),
        "creation_stamps": ("made_at", "moved_at"),
        "listed_by": rng.choice(["made_at", "moved_at", "marked_ms", None]),
        "copy": {"other": "rank"} if rng.random() < 0.5 else {},
        "revision": "writes" if rng.random() < 0.3 else None,
        "defaults": {"length": Default(by="rank", of={1: "MOST", 2: "FEW", 3: "FEW"})},
        "updates": _draw_updates(rng, states, leased),
        "deletable": deletable,
        "deleters": frozenset({"client", "reaper"} if deletable else ()),
        "lease": _draw_lease(rng, leased, index is not None) if leased else None,
        "storage": kept_with(
            expires="RETENTION_S" if rng.random() < 0.3 else None,
            unique={"ticket": Remembered(key="", seconds="LONG_S")} if rng.random() < 0.7 else {},
            indexes={"waiting": index} if index else {},
        ),
        "ceiling": Ceiling("waiting", "CEILING") if index and rng.random() < 0.5 else None,
        "overrides": Overrides("kind", {"x": {"FEW": 1, "LONG_S": 2.5}}) if rng.random() < 0.3 else None,
    }
    if deletable and rng.random() < 0.5:
        words["deletion_due"] = Due(at="moved_at", by="reaper", every="EVERY", after="LONG_S")
    words["logged"] = rng.random() < 0.8
    return lifecycle("thing", AnyRecord, edges, **words)


def _find_resting(rng: Random, edges: list[Transition], left: set[int], leased: int | None) -> frozenset[int]:
    """Some of the states that nothing leaves of itself."""
    moving = {state for each in edges if each.dues or each.target == leased for state in each.sources}
    return frozenset(state for state in left - moving - {leased} if rng.random() < 0.7)


def _draw_index(rng: Random, states: dict[int, str]) -> Index:
    return Index(
        key="q:{rank}",
        states=frozenset(rng.sample(sorted(states), rng.randint(2, len(states)))),
        only_unless="until" if rng.random() < 0.5 else None,
        only_if="ticket" if rng.random() < 0.2 else None,
    )


def _draw_edge(
    rng: Random,
    name: str,
    source: int,
    target: int,
    leased: int | None,
    *,
    waits: bool,
    by_name: bool = False,
) -> Transition:
    actors = rng.sample(ACTORS, rng.randint(1, 3))
    words: dict[str, Any] = {
        "by_name": by_name,
        "stamps": tuple(rng.sample(["moved_at", "marked_at", "marked_ms"], rng.randint(0, 3))),
        "sets": {"mode": rng.randint(0, 1)} if rng.random() < 0.3 else {},
        "copy": rng.choice([{"other": "rank"}, {"spare": "number"}]) if rng.random() < 0.2 else {},
        "clear": tuple(rng.sample(["text", "marked_at", "flag"], rng.randint(0, 1))),
        "from_request": _draw_takes(rng),
        "when": ("is_set",) if rng.random() < 0.1 else (),
        "where": {"mode": rng.randint(0, 1)} if rng.random() < 0.2 else {},
        "multiply": {"length": Multiplier(times=1.5, max="MOST")} if rng.random() < 0.2 else {},
        "increment": rng.choice(["count", "spared"]) if rng.random() < 0.4 else None,
        "reason": "text" if rng.random() < 0.2 else None,
    }
    if words["increment"] != "count" and rng.random() < 0.15:
        words["sets"] = {**words["sets"], "count": 0}
    if waits and rng.random() < 0.4:
        words["backoff"] = _draw_backoff(rng)
    dues = [_draw_due(rng, actors, is_leased=source == leased)] if rng.random() < 0.35 else []
    if source == leased and rng.random() < 0.3:
        dues.append(Due(at=None, by=rng.choice(actors), every="EVERY", holder_in=GONE))
    if dues and rng.random() < 0.2:
        dues.append(_draw_due(rng, actors, is_leased=source == leased))
    words["dues"] = tuple(dues)
    return edge(name, source, target, *actors, **words)


def _draw_takes(rng: Random) -> dict[str, Take]:
    takes = {
        "text": Take("text", default=rng.choice(["", "none"])),
        "first_text": Take("text", keep_first=True),
        "number": Take("number"),
        "flag": Take("flag"),
    }
    return {name: takes[name] for name in rng.sample(sorted(takes), rng.randint(0, 2))}


def _draw_backoff(rng: Random) -> Backoff:
    if rng.random() < 0.3:
        return Backoff(
            until="until",
            count="count",
            base="policy.base_ms",
            max="policy.most_ms",
            times="policy.factor",
            jitter="policy.jitter",
        )
    kind = rng.choice(["exponential", "linear", "constant"])
    is_constant = kind == "constant"
    bases: list[str | float] = [*_LENGTHS, "policy.base_ms", 0.75]
    return Backoff(
        kind=kind,
        until="until",
        count=None if is_constant else "count",
        base=rng.choice(bases),
        max=rng.choice(["LONG_S", "policy.most_ms", 4.5, *([None] if is_constant else [])]),
        times=rng.choice([None, "FEW", "policy.factor", 1.5]) if kind == "exponential" else None,
        jitter=rng.choice([None, "policy.jitter", 0.25]),
    )


def _draw_due(rng: Random, actors: list[str], *, is_leased: bool) -> Due:
    times = ["moved_at", "until", "marked_at", *(["ends_at", "ends_at"] if is_leased else [])]
    return Due(
        at=rng.choice(times),
        by=rng.choice(actors),
        every="EVERY",
        after=rng.choice([None, *_LENGTHS]),
        batch=rng.choice([None, "BATCH"]),
        values={"text": "late {key}"} if rng.random() < 0.5 else {},
        grace="GRACE_S" if rng.random() < 0.2 else None,
        on_access=rng.random() < 0.2,
    )


def _leave_more(
    rng: Random, edges: list[Transition], states: dict[int, str], leased: int | None
) -> list[Transition]:
    """Let some edges leave more states: none that takes the lease, and no two between the same states."""
    taken = {(source, each.target) for each in edges if not each.by_name for source in each.sources}
    made = []
    for each in edges:
        free = [
            state
            for state in states
            if state not in (each.source, each.target) and (each.by_name or (state, each.target) not in taken)
        ]
        if each.target == leased or not free or rng.random() >= 0.3:
            made.append(each)
            continue
        others = rng.sample(free, rng.randint(1, min(2, len(free))))
        taken |= set() if each.by_name else {(state, each.target) for state in others}
        made.append(replace(each, others=frozenset(others)))
    return made


def _give_up(rng: Random, edges: list[Transition]) -> list[Transition]:
    """Let some edges give up by another: one that leaves the same state, or the state they lead to."""
    made = []
    for each in edges:
        ends = [
            other.name
            for other in edges
            if other.name != each.name and (each.target in other.sources or each.sources <= other.sources)
        ]
        if ends and rng.random() < 0.3:
            less = "spared" if rng.random() < 0.3 else None
            limit = rng.choice(["FEW", "limit"])
            gives_up = DeadLetter(rng.choice(ends), count="count", limit=limit, less=less)
            made.append(replace(each, dead_letter=gives_up))
        else:
            made.append(each)
    return made


def _draw_dues(rng: Random, actors: list[str]) -> tuple[Due, ...]:
    return tuple(_draw_due(rng, actors, is_leased=False) for _ in range(1 + (rng.random() < 0.2)))


def _draw_updates(rng: Random, states: dict[int, str], leased: int | None) -> dict[str, Update]:
    updates = {}
    for number in range(rng.randint(0, 2)):
        name, is_fenced = f"s{number}", leased is not None and rng.random() < 0.3
        inside = [leased] if is_fenced and leased else rng.sample(sorted(states), rng.randint(1, 2))
        actors = rng.sample(ACTORS, rng.randint(1, 2))
        updates[name] = Update(
            name=name,
            states=frozenset(inside),
            actors=frozenset(actors),
            where={"rank": rng.randint(1, 3)} if rng.random() < 0.3 else {},
            stamps=("marked_at",) if rng.random() < 0.5 else (),
            sets=_draw_sets(rng),
            from_request=_draw_takes(rng),
            clear=("until",) if rng.random() < 0.3 else (),
            fenced=is_fenced,
            dues=_draw_dues(rng, actors) if not is_fenced and rng.random() < 0.5 else (),
        )
    return updates


def _draw_sets(rng: Random) -> dict[str, int]:
    found = {"rank": rng.randint(1, 3)} if rng.random() < 0.4 else {}
    return {**found, "count": 0} if rng.random() < 0.2 else found


def _draw_lease(rng: Random, leased: int, has_index: bool) -> Lease:
    by_renewal = rng.random() < 0.25
    holder = Holder(
        entity="courier",
        states=frozenset({IDLE}),
        capacity="room",
        offers="skills",
        needs="needs",
        booked="",
    )
    has_holder = rng.random() < 0.4
    return Lease(
        state=leased,
        owner="owner",
        expires="" if by_renewal else "ends_at",
        renewed="moved_at" if by_renewal else None,
        fence="fence",
        seconds=rng.choice(["length", "LONG_S"]),
        oldest_by=rng.choice(["made_at", "made_at", "until", "moved_at"]),
        index="waiting" if has_index else None,
        claim_order=(2, 1) if has_index and rng.random() < 0.7 else (),
        holder=holder if has_holder else None,
        only="kind" if not has_holder and rng.random() < 0.4 else None,
        token="token" if rng.random() < 0.3 else None,
        keeps_owner=rng.random() < 0.5,
    )
