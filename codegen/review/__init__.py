"""Change control: the semantic difference of a spec from its accepted form, and the records that cover it."""

from __future__ import annotations

from codegen.review.command import main
from codegen.review.compare import FROZEN, compare
from codegen.review.complaints import COMPLAINTS
from codegen.review.difference import Kind, SpecDifference, Verdict
from codegen.review.kinds import KINDS
from codegen.review.record import record_schema

__all__ = [
    "COMPLAINTS",
    "FROZEN",
    "KINDS",
    "Kind",
    "SpecDifference",
    "Verdict",
    "compare",
    "main",
    "record_schema",
]
