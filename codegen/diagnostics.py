"""Complaints about a spec: where, what, and what to do about it, as text, JSON or CI annotations."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning"]
FORMATS = ("text", "json", "github")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A spot in a spec file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    source: str = ""
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One complaint: a whole sentence and, where there is one, a way out."""

    place: Place
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"


class SpecError(Exception):
    """A spec that cannot be used, with everything that is wrong with it."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(f"{len(diagnostics)} complaints")
        self.diagnostics = tuple(diagnostics)


def render(diagnostics: Iterable[Diagnostic], style: str = "text") -> str:
    """All diagnostics, sorted by place, in one of the FORMATS."""
    ordered = sorted(set(diagnostics))
    if style == "json":
        return json.dumps([_as_record(each) for each in ordered], indent=2)
    if style == "github":
        return "\n".join(_annotation(each) for each in ordered)
    blocks = [_paragraph(each) for each in ordered]
    return "\n\n".join([*blocks, _count(ordered)]) if blocks else ""


def suggest(wrong: str, allowed: Iterable[str]) -> str:
    """A hint for a name that is not known: the closest one, or else what there is."""
    names = sorted(set(allowed))
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.5) or [
        name for name in names if name.casefold() == wrong.casefold()
    ]
    if close:
        return f"Did you mean '{close[0]}'?"
    return f"Known: {', '.join(names[:12])}{', …' if len(names) > 12 else ''}." if names else ""


def _paragraph(each: Diagnostic) -> str:
    lines = [f"{each.place}: {each.severity} {each.code}: {each.message}"]
    if each.place.source.strip():
        gutter = f"{each.place.line:>5} | "
        caret = "^" * max(1, min(each.place.length, len(each.place.source) - each.place.column + 1))
        lines += [gutter + each.place.source, " " * (len(gutter) + each.place.column - 1) + caret]
    if each.hint:
        lines.append(f"  hint: {each.hint}")
    return "\n".join(lines)


def _count(ordered: Sequence[Diagnostic]) -> str:
    errors = sum(each.severity == "error" for each in ordered)
    warnings = len(ordered) - errors
    parts = [f"{number} {word}{'s' if number != 1 else ''}" for number, word in ((errors, "error"), (warnings, "warning")) if number]
    return ", ".join(parts)


def _as_record(each: Diagnostic) -> dict[str, object]:
    place = asdict(each.place)
    place.pop("source")
    return {"code": each.code, "severity": each.severity, **place, "message": each.message, "hint": each.hint}


def _annotation(each: Diagnostic) -> str:
    text = f"{each.message} {each.hint}".strip().replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    place = each.place
    end = place.column + place.length
    return f"::{each.severity} file={place.file},line={place.line},col={place.column},endColumn={end},title={each.code}::{text}"
