"""Fairness checks: rules under which designs may be compared. Each returns its problem, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from bench.designs.manifest import DesignManifest, Manifest
from bench.workload import Workload
from runtime.node.systems import find_deployment


class UnfairComparison(Exception):
    """A comparison that would mislead; the message lists every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(("These runs cannot be compared:", *(f"- {each}" for each in problems))))
        self.problems = tuple(problems)


def require_fair(manifest: Manifest) -> None:
    """Raise with all reasons why the designs of a manifest cannot be compared."""
    problems = [
        *(problem for rule in _RULES if (problem := rule(manifest.designs))),
        *_check_turns(manifest.order),
    ]
    if problems:
        raise UnfairComparison(problems)


def require_fair_plan(deployments: Sequence[str], workload: Workload, settings: Mapping[str, str]) -> None:
    """Raise before anything is started if the settings already rule out a fair comparison."""
    problems = []
    for name in deployments:
        system, table = find_deployment(name)
        variable = table.slots_variable or ""
        default = system.variables[variable].default if variable else None
        found = sum(
            node.replicas * int(settings.get(variable) or node.defaults.get(variable) or default or 0)
            for node in table.nodes.values()
            if variable in node.variables
        )
        if found != table.slots_total:
            problems.append(_describe_slots(name, found, table.slots_total or 0))
        bound = int(settings.get("MAX_DEDUP_KEYS") or system.variables["MAX_DEDUP_KEYS"].default or 0)
        wanted = _estimate_keyed_submits(workload)
        if wanted > bound:
            problems.append(
                f"{name}: about {wanted:.0f} keyed submits a launch are more than the {bound} keys that a "
                "process remembers, and designs forget different keys. Lower keyed_share or the rate."
            )
    if problems:
        raise UnfairComparison(problems)


Rule = Callable[[Mapping[str, DesignManifest]], str]


def _check_slot_budget(designs: Mapping[str, DesignManifest]) -> str:
    wrong = [each for each in designs.values() if each.slots != each.slots_in_spec]
    return " ".join(_describe_slots(each.deployment, each.slots, each.slots_in_spec) for each in wrong)


def _check_same_slots(designs: Mapping[str, DesignManifest]) -> str:
    return _describe_difference(designs, "slots in all", lambda each: each.slots)


def _check_same_spec(designs: Mapping[str, DesignManifest]) -> str:
    return _describe_difference(designs, "spec", lambda each: each.spec_digest[:12])


def _check_same_workload(designs: Mapping[str, DesignManifest]) -> str:
    return _describe_difference(designs, "workload", lambda each: each.workload_digest[:12])


def _check_same_seed(designs: Mapping[str, DesignManifest]) -> str:
    return _describe_difference(designs, "seed", lambda each: each.seed)


def _check_same_tls(designs: Mapping[str, DesignManifest]) -> str:
    return _describe_difference(designs, "TLS setting", lambda each: "on" if each.tls else "off")


def _check_same_machine(designs: Mapping[str, DesignManifest]) -> str:
    return _describe_difference(designs, "machine", lambda each: each.machine_id)


def _check_same_repeats(designs: Mapping[str, DesignManifest]) -> str:
    return _describe_difference(designs, "number of launches", lambda each: len(each.launches))


def _check_dedup_bound(designs: Mapping[str, DesignManifest]) -> str:
    return " ".join(
        f"{each.deployment}: {each.dedup.keyed_submits} keyed submits in a launch are more than the "
        f"{each.dedup.per_process} keys that a process remembers."
        for each in designs.values()
        if not each.dedup.is_within_bound
    )


_RULES: tuple[Rule, ...] = (
    _check_slot_budget,
    _check_same_slots,
    _check_same_spec,
    _check_same_workload,
    _check_same_seed,
    _check_same_tls,
    _check_same_machine,
    _check_same_repeats,
    _check_dedup_bound,
)


def _check_turns(order: Sequence[str]) -> list[str]:
    """Check that designs took turns, because a machine changes over time: none twice before the others."""
    names = list(dict.fromkeys(order))
    turns = [order[start : start + len(names)] for start in range(0, len(order), len(names))]
    if all(sorted(turn) == sorted(names) for turn in turns) and all(
        first != second for first, second in pairwise(order)
    ):
        return []
    return [f"the designs did not take turns: {', '.join(order)}."]


def _describe_difference(
    designs: Mapping[str, DesignManifest], subject: str, value: Callable[[DesignManifest], object]
) -> str:
    found = {each.deployment: value(each) for each in designs.values()}
    if len(set(found.values())) <= 1:
        return ""
    return f"not the same {subject}: " + ", ".join(f"{name} has {each}" for name, each in found.items()) + "."


def _describe_slots(name: str, found: int | None, budget: int) -> str:
    return f"{name} has {found} slots in all, and the spec's budget is {budget}."


def _estimate_keyed_submits(workload: Workload) -> float:
    """Estimate the keyed submits of a launch by those of open loops, which have a rate."""
    return sum(
        load.level
        * load.keyed_share
        * load.mix.submit
        / len(load.mix.expand())
        * (load.warm_up_s + load.run_s)
        for load in workload.loads()
        if load.loop == "open"
    )
