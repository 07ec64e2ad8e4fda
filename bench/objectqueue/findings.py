"""Findings of a run and their goals, as they are stored in `bench/results`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.designs.results import ResultRecord

CLAIM_P99_MS = 50.0
TASKS_PER_S = 100.0
OF_BARE = 0.7
POLL = 1.3
"""The limit of noise: a poll should cost the same in each mode, however many tasks are finished."""
KINDS_SHOWN = ("LIST", "GET", "PUT", "DELETE")
LEAST = {"LIST": 0.0, "GET": 1.0, "PUT": 2.0, "DELETE": 1.0}
"""The least requests of a short task: one read, the writes of its claim and of its end, and the removal of
its entry. A longer task has an entry for its lease, too."""
PRICES = {"LIST": 5.0, "PUT": 5.0, "GET": 0.4, "DELETE": 0.0}
"""Dollars for a million requests: the list prices of the largest provider for its usual class of storage, in
its first region. An example; others ask for more or less, and some for nothing."""


class Rates(ResultRecord):
    """One worker process and bare requests, in turns, with the same number in flight."""

    at_once: int
    tasks_per_s: Sequence[float]
    puts_per_s: Sequence[float]
    by_hand_per_s: Sequence[float]
    worker_cpu_ms: float
    store_cpu_ms: float
    """For each task."""
    put_store_cpu_ms: float
    by_hand_store_cpu_ms: float

    @property
    def of_puts(self) -> float:
        """Tasks over the tasks that bare PUTs would allow, the median of the rounds."""
        pairs = zip(self.tasks_per_s, self.puts_per_s, strict=True)
        return statistics.median(tasks / (puts / LEAST["PUT"]) for tasks, puts in pairs)

    @property
    def of_by_hand(self) -> float:
        """Tasks over the same requests without a queue."""
        return statistics.median(
            tasks / hand for tasks, hand in zip(self.tasks_per_s, self.by_hand_per_s, strict=True)
        )


class Polls(ResultRecord):
    """A poll of an empty queue that a monitor has swept, with few and with many finished tasks."""

    mode: str
    few: int
    many: int
    few_cpu_ms: Sequence[float]
    many_cpu_ms: Sequence[float]
    few_requests: float
    many_requests: float

    @property
    def ratio(self) -> float:
        pairs = zip(self.few_cpu_ms, self.many_cpu_ms, strict=True)
        return statistics.median(many / few for few, many in pairs)

    @property
    def of_requests(self) -> float:
        return self.many_requests / self.few_requests


class ObjectQueueFindings(ResultRecord):
    """Findings of one run."""

    stamp: str
    commit: str
    quick: bool
    machine: Mapping[str, Any]
    claim_p50_ms: float
    claim_p99_ms: float
    rates: Sequence[Rates]
    requests_per_task: Mapping[str, Mapping[str, float]]
    idle_per_hour: Mapping[str, Mapping[str, float]]
    polls: Sequence[Polls]

    @property
    def missed(self) -> list[str]:
        """The goals that were not met, a sentence each."""
        best = max(statistics.median(each.tasks_per_s) for each in self.rates)
        ratio = max(each.of_puts for each in self.rates)
        asked = sum(self.requests_per_task["index-only"].values())
        goals = {
            f"a claim takes {self.claim_p99_ms:.0f} ms at p99, not {CLAIM_P99_MS:g}": (
                self.claim_p99_ms < CLAIM_P99_MS
            ),
            f"a worker does {best:.0f} tasks a second, not {TASKS_PER_S:g}": best >= TASKS_PER_S,
            f"that is {ratio:.2f} of the rate that bare PUTs allow, not {OF_BARE:g}": ratio >= OF_BARE,
            f"a task takes {asked:.1f} requests, not {sum(LEAST.values()) + 1:g}": (
                asked <= sum(LEAST.values()) + 1
            ),
        }
        for each in self.polls:
            poll = f"a poll, {each.mode}, after {each.many:,} tasks"
            goals[f"{poll} costs {each.ratio:.2f} times as much"] = each.ratio <= POLL
            goals[f"{poll} takes {each.of_requests:.2f} times as many requests"] = each.of_requests <= POLL
        return [sentence for sentence, is_met in goals.items() if not is_met]


def price_requests(requests: Mapping[str, float]) -> float:
    """Compute the dollars of some requests at the prices of the example."""
    return sum(PRICES[kind] * count for kind, count in requests.items()) / 1e6
