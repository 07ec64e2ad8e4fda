"""Catalogue entries of complaints that are not rules of a single spec."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Complaint:
    """A code, its meaning, and an example of wrong and right."""

    code: str
    meaning: str
    wrong: str
    right: str
    severity: Severity = "error"
