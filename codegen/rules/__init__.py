"""What no schema can say: references, reachability, who can drive what. A rule is a record and a function.

Codes: E0xx the text and shape of a file, E1xx types, E2xx lifecycle, E3xx services, E4xx callers,
E5xx errors, E6xx environment, E7xx deployments, E8xx system, E85x metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from codegen.diagnostics import Diagnostic
from codegen.rules import (
    alerts,
    buckets,
    callers,
    calls,
    choosing,
    clocks,
    demand,
    deployments,
    environment,
    errors,
    fields,
    gauges,
    holding,
    indexes,
    kept,
    keys,
    leases,
    lifecycle,
    listeners,
    methods,
    metrics,
    names,
    network,
    numbers,
    presence,
    records,
    routes,
    routing,
    services,
    shifts,
    states,
    stores,
    system,
    text,
    types,
    variables,
    wiring,
)
from codegen.rules.rule import Rule
from codegen.source.spec import Spec

MODULES = (
    *(text, names, system, types, numbers, fields, presence, services, methods, routes, callers, errors),
    *(records, lifecycle, states, stores, kept, leases, clocks, calls),
    *(keys, indexes, holding, shifts, buckets, choosing, metrics, gauges, alerts),
    *(deployments, wiring, routing, listeners, network, demand, environment, variables),
)
"""In the order in which one fault makes the next: what the later ones build on comes first."""

RULES: tuple[Rule, ...] = tuple(
    each for module in MODULES for each in vars(module).values() if isinstance(each, Rule)
)


def check(spec: Spec, complaints: Iterable[Diagnostic] = ()) -> list[Diagnostic]:
    """Everything the rules find in a spec whose text and shape gave the complaints so far."""
    faulty = _files(complaints)
    found: list[Diagnostic] = []
    for each in sorted(RULES, key=lambda each: bool(each.needs)):
        if faulty.isdisjoint(each.needs):
            breaches = each.find(spec)
            found += breaches
            if each.spreads:
                faulty |= _files(breaches)
    return found


def _files(complaints: Iterable[Diagnostic]) -> set[str]:
    """The files that complaints are about, as `needs` names them."""
    return {PurePosixPath(each.place.file).stem for each in complaints}
