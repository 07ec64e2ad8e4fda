"""The rule of lifecycle.yaml about what a backoff of each kind goes by."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Backoff
from codegen.rules.rule import Finding, rule
from codegen.source.spec import Spec


@rule(
    "E272",
    "A backoff lacks what its kind goes by, or has what it does not go by.",
    wrong="backoff: {kind: linear, until: again_at, base: 5}",
    right="backoff: {kind: linear, until: again_at, count: burnt, base: 5, max: 60}",
)
def check_backoff_kinds(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for edge, row in entity.transitions.items():
            for word, message, hint in _list_faults(edge, row.backoff) if row.backoff else ():
                here = ("entities", name, "transitions", edge, "backoff", *([word] if word else []))
                yield Finding(spec.place("lifecycle", *here, key=True), message, hint)


def _list_faults(edge: str, row: Backoff) -> Iterator[tuple[str, str, str]]:
    """List the faults of a backoff: the key, if it is one too many, the message and the hint."""
    grows = f"The backoff of '{edge}' is {row.kind}, so that it grows with each failure"
    if row.kind != "constant" and row.count is None:
        yield "", f"{grows}, but names no count of them.", "Add 'count', or say 'kind: constant'."
    if row.kind != "constant" and row.max is None:
        yield "", f"{grows}, but has no longest wait.", "Add 'max', or say 'kind: constant'."
    if row.kind == "constant" and row.count is not None:
        yield "count", f"The backoff of '{edge}' is constant, so that it counts nothing.", "Remove 'count'."
    if row.kind != "exponential" and row.times is not None:
        message = f"The backoff of '{edge}' is {row.kind}, and 'times' is the factor of an exponential one."
        yield "times", message, "Remove 'times', or say 'kind: exponential'."
    if isinstance(row.jitter, int | float) and row.jitter > 1:
        message = f"The jitter of '{edge}' is {row.jitter:g}, and it is a fraction of the wait."
        yield "jitter", message, "Write a number from 0 to 1."
