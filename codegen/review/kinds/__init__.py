"""The kinds of difference, a module for each file of a spec. A kind is a record and a function."""

from __future__ import annotations

from codegen.review.difference import Kind
from codegen.review.kinds import (
    buckets,
    callers,
    deployments,
    environment,
    errors,
    keeping,
    lifecycle,
    metrics,
    redis,
    rules,
    services,
    states,
    system,
    types,
)

MODULES = (
    *(system, types, rules, lifecycle, states, keeping, redis, buckets),
    *(services, callers, errors, environment, deployments, metrics),
)
KINDS: tuple[Kind, ...] = tuple(
    each for module in MODULES for each in vars(module).values() if isinstance(each, Kind)
)
"""Every kind, in the order in which a reader should meet them."""
