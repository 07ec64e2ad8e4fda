"""A complaint that is no rule of a single spec, with examples for the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Complaint:
    """A code, what it means, and both sides of it."""

    code: str
    meaning: str
    wrong: str
    right: str
    severity: Severity = "error"
