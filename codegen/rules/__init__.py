"""What no schema can say: references, reachability, who can drive what. A rule is a record and a function.

Codes: E0xx the text and shape of a file, E1xx types, E2xx lifecycle, E3xx services, E4xx callers, E5xx errors,
E6xx environment, E7xx deployments.
"""

from __future__ import annotations

from codegen.diagnostics import Diagnostic
from codegen.rules import callers, deployments, environment, errors, lifecycle, services, types
from codegen.rules.rule import Rule
from codegen.spec import Spec

MODULES = (types, lifecycle, services, callers, errors, environment, deployments)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (each for module in MODULES for each in vars(module).values() if isinstance(each, Rule)),
        key=lambda each: each.code,
    )
)


def check(spec: Spec, *, whole: bool = True) -> list[Diagnostic]:
    """Everything the rules find. A spec with parts left out is spared what only makes sense of the whole."""
    return [
        diagnostic
        for each in RULES
        if whole or not each.needs_whole
        for diagnostic in each.find(spec)
    ]
