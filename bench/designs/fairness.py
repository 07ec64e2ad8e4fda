"""Whether two designs may be compared. Each rule is a sentence and a function that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from bench.designs.manifest import DesignManifest, Manifest
from bench.workload import Workload
from runtime.node.systems import find_deployment


class Unfair(Exception):
    """A comparison that would mislead. Its text has every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(("These runs cannot be compared:", *(f"- {each}" for each in problems))))
        self.problems = tuple(problems)


def require_fair(manifest: Manifest) -> None:
    """Raises with all reasons why the designs of a manifest cannot be compared."""
    problems = [
        *(problem for rule in _RULES if (problem := rule(manifest.designs))),
        *_not_in_turns(manifest.order),
    ]
    if problems:
        raise Unfair(problems)


def require_fair_plan(deployments: Sequence[str], workload: Workload, settings: Mapping[str, str]) -> None:
    """Raises before anything is started if it is plain that no comparison could come of it."""
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
            problems.append(_slots(name, found, table.slots_total or 0))
        bound = int(settings.get("MAX_DEDUP_KEYS") or system.variables["MAX_DEDUP_KEYS"].default or 0)
        wanted = _keyed(workload)
        if wanted > bound:
            problems.append(
                f"{name}: about {wanted:.0f} keyed submits a launch are more than the {bound} keys that a "
                "process remembers, and what is forgotten differs between designs."
            )
    if problems:
        raise Unfair(problems)


Rule = Callable[[Mapping[str, DesignManifest]], str]


def _slots_are_the_budget(designs: Mapping[str, DesignManifest]) -> str:
    wrong = [each for each in designs.values() if each.slots != each.slots_in_spec]
    return " ".join(_slots(each.deployment, each.slots, each.slots_in_spec) for each in wrong)


def _slots_are_equal(designs: Mapping[str, DesignManifest]) -> str:
    return _differ(designs, "slots in all", lambda each: each.slots)


def _same_spec(designs: Mapping[str, DesignManifest]) -> str:
    return _differ(designs, "spec", lambda each: each.spec_digest[:12])


def _same_workload(designs: Mapping[str, DesignManifest]) -> str:
    return _differ(designs, "workload", lambda each: each.workload_digest[:12])


def _same_seed(designs: Mapping[str, DesignManifest]) -> str:
    return _differ(designs, "seed", lambda each: each.seed)


def _same_tls(designs: Mapping[str, DesignManifest]) -> str:
    return _differ(designs, "TLS setting", lambda each: "on" if each.tls else "off")


def _same_machine(designs: Mapping[str, DesignManifest]) -> str:
    return _differ(designs, "machine", lambda each: each.machine_id)


def _same_repeats(designs: Mapping[str, DesignManifest]) -> str:
    return _differ(designs, "number of launches", lambda each: len(each.launches))


def _within_dedup_bound(designs: Mapping[str, DesignManifest]) -> str:
    return " ".join(
        f"{each.deployment}: {each.dedup.keyed_submits} keyed submits in a launch are more than the "
        f"{each.dedup.per_process} keys that a process remembers."
        for each in designs.values()
        if not each.dedup.within
    )


_RULES: tuple[Rule, ...] = (
    _slots_are_the_budget,
    _slots_are_equal,
    _same_spec,
    _same_workload,
    _same_seed,
    _same_tls,
    _same_machine,
    _same_repeats,
    _within_dedup_bound,
)


def _not_in_turns(order: Sequence[str]) -> list[str]:
    """A machine changes over time, so designs take turns: none is measured twice before the others are."""
    names = list(dict.fromkeys(order))
    turns = [order[start : start + len(names)] for start in range(0, len(order), len(names))]
    if all(sorted(turn) == sorted(names) for turn in turns) and all(
        first != second for first, second in pairwise(order)
    ):
        return []
    return [f"the designs did not take turns: {', '.join(order)}."]


def _differ(
    designs: Mapping[str, DesignManifest], what: str, value: Callable[[DesignManifest], object]
) -> str:
    found = {each.deployment: value(each) for each in designs.values()}
    if len(set(found.values())) <= 1:
        return ""
    return f"not the same {what}: " + ", ".join(f"{name} has {each}" for name, each in found.items()) + "."


def _slots(name: str, found: int | None, budget: int) -> str:
    return f"{name} has {found} slots in all, and the spec's budget is {budget}."


def _keyed(workload: Workload) -> float:
    """Keyed submits of a launch that are sure to come: those of open loops, which have a rate."""
    return sum(
        load.level * load.keyed_share * load.mix.submit / len(load.mix.deal()) * (load.warm_up_s + load.run_s)
        for load in workload.loads()
        if load.loop == "open"
    )
