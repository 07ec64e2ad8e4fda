"""Semantic rules of a spec: references, reachability, permissions. A rule is a record and a function.

Codes: E0xx the text and shape of a file, E1xx types, E2xx lifecycle, E3xx services, E4xx callers,
E5xx errors, E6xx environment, E7xx deployments, E8xx system, E85x metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from codegen.diagnostics import Diagnostic
from codegen.rules import names, yaml_errors
from codegen.rules.callers import caller_matrix, required_calls
from codegen.rules.deployments import engines, hosting, listeners, network, on_demand_nodes, routing, wiring
from codegen.rules.environment import variable_relations, variables
from codegen.rules.errors import conditions
from codegen.rules.lifecycle import backoff, due_transitions, leases, record_fields, references, state_graph
from codegen.rules.metrics import alerts, definitions, gauges
from codegen.rules.rule import Rule
from codegen.rules.services import components, methods, routes
from codegen.rules.storage import (
    claims,
    edge_values,
    indexes,
    names_in_storage,
    persistence,
    redis_keys,
    s3_buckets,
    updates,
)
from codegen.rules.system import protos_and_policies
from codegen.rules.types import declarations, field_rules, numbers, optional_fields
from codegen.source.spec import Spec

MODULES = (
    *(yaml_errors, names, protos_and_policies),
    *(declarations, numbers, field_rules, optional_fields),
    *(components, methods, routes, caller_matrix, conditions),
    *(record_fields, references, state_graph, names_in_storage, persistence),
    *(leases, due_transitions, backoff, required_calls),
    *(redis_keys, indexes, claims, updates, s3_buckets, edge_values),
    *(definitions, gauges, alerts),
    *(hosting, engines, wiring, routing, listeners, network, on_demand_nodes, variables, variable_relations),
)
"""In order of dependency: a rule comes after those whose findings would cause its own."""

RULES: tuple[Rule, ...] = tuple(
    each for module in MODULES for each in vars(module).values() if isinstance(each, Rule)
)


def check(spec: Spec, complaints: Iterable[Diagnostic] = ()) -> list[Diagnostic]:
    """Run all rules on a spec. `complaints` are those about its text and shape."""
    faulty = _list_files(complaints)
    found: list[Diagnostic] = []
    for each in sorted(RULES, key=lambda each: bool(each.needs)):
        if faulty.isdisjoint(each.needs):
            breaches = each.find(spec)
            found += breaches
            if each.spreads:
                faulty |= _list_files(breaches)
    return found


def _list_files(complaints: Iterable[Diagnostic]) -> set[str]:
    """List the files that complaints are about, as `needs` names them."""
    return {PurePosixPath(each.place.file).stem for each in complaints}
