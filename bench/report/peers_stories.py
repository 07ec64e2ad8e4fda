"""Texts of the comparisons with peers, by system: pictures, sentences and circumstances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.peers.contestants import PGQUEUER, PROCRASTINATE
from bench.peers.findings import PeerFindings
from bench.peers.goals import DRAINS, compute_ratio
from bench.peers.on_redis.contestants import BULLMQ, PYTHON_PEERS
from bench.peers.on_redis.ours import IN_PROCESS, SLOTS
from bench.peers.ours import IN_DATABASE
from bench.peers.ours import OVER_HTTP as ORCHESTRATOR_HTTP
from bench.report import peers_figures
from bench.report.peers_tables import format_heading
from bench.report.style import Palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[PeerFindings, Palette], "Figure | None"]


@dataclass(frozen=True, slots=True)
class PeerPicture:
    """A picture of the report, with its explanation."""

    name: str
    title: str
    text: str
    draw: Draw


@dataclass(frozen=True, slots=True)
class PeerStory:
    """The texts and pictures of one comparison."""

    server: str
    """The version and the settings of the server; {versions} has the versions."""
    pictures: tuple[PeerPicture, ...]
    sentences: Callable[[PeerFindings], Iterator[str]]
    circumstances: tuple[str, ...]


ORCHESTRATOR_PICTURES = (
    PeerPicture(
        "drains",
        "Draining a full queue",
        "One worker process and jobs that do nothing, from the first finished job to the last by the "
        "database's own stamps. pgbench does no more than take a row and mark it done: no events, no owner, "
        "no job function.",
        peers_figures.draw_drains,
    ),
    PeerPicture(
        "submits",
        "Submitting",
        "One producer process. The peers are called within it; so is our enqueue function. Over HTTP a call "
        "goes through the API, which checks it, stores the job and then queues it.",
        peers_figures.draw_submits,
    ),
    PeerPicture(
        "pickups",
        "From submit to start when idle",
        "From before the call that submits to the first line of the job function, in a worker that waits.",
        peers_figures.draw_pickups,
    ),
    PeerPicture(
        "guards",
        "What the guards cost",
        "Our drain with 100 at a time as it is, and on scratch databases that lack one guard each.",
        peers_figures.draw_guards,
    ),
)


def _summarize_orchestrator(findings: PeerFindings) -> Iterator[str]:
    for name, half in findings.halves.items():
        drains, single = half.rates["drain"], half.rates["single-1"]
        heading = format_heading(findings, name)
        ratios = ", ".join(
            f"{compute_ratio(drains[own], drains[peer]):.2f} times {peer} ({own}: {drains[own].per_s:,.0f}/s)"
            for peer, (own, _) in DRAINS.items()
        )
        yield f"Drain with {heading}: {ratios}."
        yield (
            f"Submit with {heading}, one at a time: {single[IN_DATABASE].per_s:,.0f}/s in "
            f"the database and {single[ORCHESTRATOR_HTTP].per_s:,.0f}/s over HTTP, where procrastinate has "
            f"{single[PROCRASTINATE].per_s:,.0f} and pgqueuer {single[PGQUEUER].per_s:,.0f}."
        )


PRIORITY_PICTURES = (
    PeerPicture(
        "drains",
        "Draining a full queue",
        "One worker process and jobs that do nothing, from the first run until the last and nothing being "
        "left. EVALSHA does no more than take the first of a sorted set and delete its hash.",
        peers_figures.draw_drains,
    ),
    PeerPicture(
        "submits",
        "Submitting",
        "One producer process. The peers are called within it, and so is our producer in process; over gRPC "
        "and HTTP a call goes through an API process. Peers without a call for many submit one by one.",
        peers_figures.draw_submits,
    ),
    PeerPicture(
        "pickups",
        "From submit to start when idle",
        "From before the call that submits to the first line of the job function, in a worker that waits.",
        peers_figures.draw_pickups,
    ),
)


def _summarize_priority(findings: PeerFindings) -> Iterator[str]:
    own = SLOTS[100]
    for name, half in findings.halves.items():
        drains, single = half.rates["drain"], half.rates["single-1"]
        heading = format_heading(findings, name)
        ratios = ", ".join(
            f"{compute_ratio(drains[own], drains[peer]):.2f} times {peer} ({drains[peer].per_s:,.0f}/s)"
            for peer in (*PYTHON_PEERS, BULLMQ)
            if peer in drains
        )
        yield f"Drain with {heading}: {drains[own].per_s:,.0f}/s, which is {ratios}."
        others = {each: single[each].per_s for each in PYTHON_PEERS if each in single}
        if others:
            best = max(others, key=lambda each: others[each])
            yield (
                f"Submit with {heading}, one at a time: {single[IN_PROCESS].per_s:,.0f}/s "
                f"in process, where the fastest peer, {best}, has {others[best]:,.0f}."
            )


STORIES: Mapping[str, PeerStory] = {
    "orchestrator": PeerStory(
        server="PostgreSQL {versions[postgresql]}, default settings",
        pictures=ORCHESTRATOR_PICTURES,
        sentences=_summarize_orchestrator,
        circumstances=(
            "One PostgreSQL with the settings that it comes with (fsync and synchronous_commit on), a "
            "database for each, a checkpoint before each measurement. All processes share this machine.",
            "procrastinate and pgqueuer run by their own commands at their documented defaults, "
            "pgqueuer with the autovacuum settings that its checklist asks for, and a second time with "
            "a batch of 100.",
            "CPU is the processor time of all processes that took part, the server included; of pgbench"
            " itself it is left out.",
        ),
    ),
    "priority": PeerStory(
        server="Redis {versions[redis-server]}, log synced every second",
        pictures=PRIORITY_PICTURES,
        sentences=_summarize_priority,
        circumstances=(
            "One Redis with its log on and synced every second, a database for each. The log is not "
            "rewritten during a run. All processes share this machine.",
            "The peers run by their own commands with one process at their documented defaults: rq "
            "forks for each job, arq and saq run 10 at a time, taskiq 100, dramatiq has 8 threads, huey"
            " 1, celery a pool of 1. BullMQ runs 100 at a time, because that is faster than its "
            "default.",
            "What waits and is not taken is another queue for the peers; for ours it is tasks in the "
            "very queue that is drained, which need a capability that the worker does not have.",
            "CPU is the processor time of all processes that took part, the server included.",
        ),
    ),
}
