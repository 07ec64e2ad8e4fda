"""The kinds of difference, a module or folder for each file of a spec. A kind is a record and a function."""

from __future__ import annotations

from codegen.review.difference import Kind
from codegen.review.kinds import (
    callers,
    deployments,
    environment,
    errors,
    field_rules,
    metrics,
    services,
    storage,
    system,
    types,
)
from codegen.review.kinds.lifecycle import buckets, persistence, states, transitions, updates

MODULES = (
    *(system, types, field_rules, transitions, states, persistence, updates, buckets, storage),
    *(services, callers, errors, environment, deployments, metrics),
)
KINDS: tuple[Kind, ...] = tuple(
    each for module in MODULES for each in vars(module).values() if isinstance(each, Kind)
)
"""Every kind, in reading order."""
