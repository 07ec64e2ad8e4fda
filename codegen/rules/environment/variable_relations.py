"""Rules of environment.yaml about the rules between variables."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.environment import VariableRule
from codegen.rules.lookup import format_list
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

_NUMBERS = ("int", "number", "port")


@rule(
    "E611",
    "A rule names a variable that does not exist.",
    wrong="- {variable: WORKER_TIMOUT_MS, greater_than: HEARTBEAT_INTERVAL_MS}",
    right="- {variable: WORKER_TIMEOUT_MS, greater_than: HEARTBEAT_INTERVAL_MS}",
    spreads=True,
)
def check_variables_exist(spec: Spec) -> Iterator[Finding]:
    for index, row in enumerate(spec.environment.rules):
        for path, name in _list_variables(row):
            place = spec.place("environment", "rules", index, *path)
            yield from report_unknown(spec, place, "The rule is about", name, spec.environment.variables)


@rule(
    "E612",
    "A rule between variables does not say one thing.",
    wrong="- {variable: WORKER_TIMEOUT_MS}",
    right="- {variable: WORKER_TIMEOUT_MS, greater_than: HEARTBEAT_INTERVAL_MS}",
    needs=("environment",),
)
def check_rule_form(spec: Spec) -> Iterator[Finding]:
    for index, row in enumerate(spec.environment.rules):
        compared = [key for key in ("greater_than", "less_than_count_of") if getattr(row, key)]
        sound = len(row.together) > 1 and not compared and row.variable is None
        if not sound and (row.together or row.variable is None or len(compared) != 1):
            message = "The rule does not say one thing."
            hint = (
                "Say 'variable' and 'greater_than' or 'less_than_count_of', or 'together' with two or more."
            )
            yield Finding(spec.place("environment", "rules", index), message, hint)


@rule(
    "E613",
    "A rule compares variables that cannot be compared.",
    wrong="- {variable: LOG_LEVEL, greater_than: HEARTBEAT_INTERVAL_MS}",
    right="- {variable: WORKER_TIMEOUT_MS, greater_than: HEARTBEAT_INTERVAL_MS}",
)
def check_rule_types(spec: Spec) -> Iterator[Finding]:
    for index, row in enumerate(spec.environment.rules):
        for path, name in _list_variables(row):
            found = spec.environment.variables.get(name)
            if found is None:
                continue
            place = spec.place("environment", "rules", index, *path)
            wanted = ("addresses",) if path == ("less_than_count_of",) else _NUMBERS
            if row.together:
                if found.required or found.default is not None or found.default_from is not None:
                    message = f"{name} is always set, so it makes no sense to ask whether it is."
                    yield Finding(place, message, "Name variables without a default that are not required.")
            elif found.type not in wanted:
                message = f"{name} is of type {found.type}, which cannot be compared like this."
                yield Finding(place, message, f"Name a variable of type {' or '.join(wanted)}.")


@rule(
    "E614",
    "No node reads all variables of a rule, so it is never checked.",
    wrong="- {variable: WORKER_SLOTS, greater_than: MAX_DEDUP_KEYS}  # no node reads both",
    right="- {variable: WORKER_TIMEOUT_MS, greater_than: HEARTBEAT_INTERVAL_MS}  # one does",
    needs=("environment", "deployments", "services"),
)
def check_rule_readers(spec: Spec) -> Iterator[Finding]:
    reads = [set(spec.variables_of(deployment, node)) for _, deployment, node, _ in spec.nodes()]
    everywhere = set().union(*reads)
    for index, row in enumerate(spec.environment.rules):
        names = list(dict.fromkeys(name for _, name in _list_variables(row)))
        if everywhere.issuperset(names) and not any(each.issuperset(names) for each in reads):
            message = f"No node reads {format_list(names)} together, so this is never checked."
            yield Finding(
                spec.place("environment", "rules", index), message, "Let one component read all of them."
            )


@rule(
    "E615",
    "The defaults break a rule between variables, so that nothing would start without settings.",
    wrong="WORKER_TIMEOUT_MS: {default: 500}\nHEARTBEAT_INTERVAL_MS: {default: 1000}",
    right="WORKER_TIMEOUT_MS: {default: 4000}\nHEARTBEAT_INTERVAL_MS: {default: 1000}",
)
def check_rule_defaults(spec: Spec) -> Iterator[Finding]:
    variables = spec.environment.variables
    for index, row in enumerate(spec.environment.rules):
        more, less = variables.get(row.variable or ""), variables.get(row.greater_than or "")
        high, low = more and more.default, less and less.default
        if isinstance(high, int | float) and isinstance(low, int | float) and high <= low:
            place = spec.place("environment", "rules", index)
            message = f"By default {row.variable} is {high}, not greater than {row.greater_than}, {low}."
            yield Finding(place, message, "Change one of the defaults.")


@rule(
    "E616",
    "A variable goes by a name that another has, or by its own.",
    wrong="PLANT_LOG: {also_named: [LOG_LEVEL]}\nLOG_LEVEL: {}",
    right="PLANT_LOG: {also_named: [RUST_LOG]}",
)
def check_aliases_unique(spec: Spec) -> Iterator[Finding]:
    first = {name: name for name in spec.environment.variables}
    for name, row in spec.environment.variables.items():
        for index, other in enumerate(row.also_named):
            if (owner := first.setdefault(other, name)) != name or other == name:
                place = spec.place("environment", "variables", name, "also_named", index)
                whose = f"the name of {owner}" if owner == other else f"another name of {owner}"
                message = f"{name} goes by {other}, which is {whose} already."
                yield Finding(place, message, "Choose another name, or remove it.")


def _list_variables(row: VariableRule) -> list[tuple[Path, str]]:
    """List the variables that a rule names, each with its path."""
    keys = ("variable", "greater_than", "less_than_count_of")
    single: list[tuple[Path, str]] = [((key,), getattr(row, key)) for key in keys if getattr(row, key)]
    return single + [(("together", index), name) for index, name in enumerate(row.together)]
