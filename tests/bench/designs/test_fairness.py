"""Comparisons that would mislead are refused, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from bench.designs.fairness import UnfairComparison, require_fair, require_fair_plan
from bench.designs.manifest import DedupUse, DesignManifest, Manifest
from tests.support.bench.canned_findings import WORKLOAD, create_manifest

BOTH = ["taskqueue.microservices", "taskqueue.monolith"]


def alter_monolith(**changes: Any) -> Manifest:
    """Create a manifest whose monolith was measured differently."""
    found = create_manifest()
    monolith: DesignManifest = found.designs["monolith"].model_copy(update=changes)
    return found.model_copy(update={"designs": {**found.designs, "monolith": monolith}})


@pytest.mark.req("TQ-199", "TQ-201")
def test_equal_designs_may_be_compared() -> None:
    """The designs of the spec, as they are launched, are fair."""
    require_fair(create_manifest())
    require_fair_plan(BOTH, WORKLOAD, {})


@pytest.mark.req("TQ-199")
def test_other_sums_of_slots_are_refused() -> None:
    """The harness does not run when a design has other slots in all than the budget."""
    with pytest.raises(UnfairComparison) as refusal:
        require_fair_plan(BOTH, WORKLOAD, {"WORKER_SLOTS": "2"})
    assert refusal.value.problems == (
        "taskqueue.microservices has 2 slots in all, and the spec's budget is 6.",
        "taskqueue.monolith has 12 slots in all, and the spec's budget is 6.",
    )
    with pytest.raises(UnfairComparison, match=r"monolith has 12 slots in all"):
        require_fair(alter_monolith(slots=12))


@pytest.mark.req("TQ-201")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"workload_digest": "f" * 64}, "not the same workload"),
        ({"seed": 1}, "not the same seed: taskqueue.microservices has 20260210, taskqueue.monolith has 1."),
        ({"tls": True}, "not the same TLS setting: taskqueue.microservices has off"),
        ({"spec_digest": "f" * 64}, "not the same spec"),
        ({"machine_id": "another"}, "not the same machine"),
        ({"launches": (("127.0.0.1:1",),)}, "not the same number of launches"),
    ],
)
def test_every_circumstance_must_be_the_same(changes: dict[str, Any], reason: str) -> None:
    """Workload, seed, TLS, spec, machine and repeats: one difference is enough."""
    with pytest.raises(UnfairComparison, match=reason):
        require_fair(alter_monolith(**changes))


@pytest.mark.req("CH-24")
def test_more_keys_than_a_design_remembers_are_refused() -> None:
    """Beyond the bound designs forget different keys, so the benchmark stays below it."""
    with pytest.raises(
        UnfairComparison, match="10001 keyed submits in a launch are more than the 10000 keys"
    ):
        require_fair(alter_monolith(dedup=DedupUse(per_process=10000, in_all=60000, keyed_submits=10001)))
    with pytest.raises(UnfairComparison, match="are more than the 100 keys that a process remembers"):
        require_fair_plan(BOTH, WORKLOAD, {"MAX_DEDUP_KEYS": "100"})


@pytest.mark.parametrize("order", [BOTH[:1] * 2 + BOTH[1:] * 2, [*BOTH, *reversed(BOTH)], BOTH[:1] * 2])
def test_designs_take_turns(order: list[str]) -> None:
    """One design after the other would measure the drift of the machine, not the designs."""
    with pytest.raises(UnfairComparison, match="did not take turns"):
        require_fair(create_manifest().model_copy(update={"order": tuple(order)}))


def test_all_reasons_are_in_one_message() -> None:
    """Another run is not needed to see the next problem."""
    with pytest.raises(UnfairComparison) as refusal:
        require_fair(alter_monolith(seed=1, tls=True, slots=5))
    assert len(refusal.value.problems) == 4
