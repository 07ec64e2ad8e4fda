"""Diagnostics of a spec: place, message and hint, as text, JSON or CI annotations."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning"]
FORMATS = ("text", "json", "github")
_WIDTH = 150
_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a spec file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    source: str = ""
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One complaint: a whole sentence and, where there is one, a hint."""

    place: Place
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"


class SpecError(Exception):
    """An invalid spec, with all complaints about it."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(f"{len(diagnostics)} complaints")
        self.diagnostics = tuple(diagnostics)


def render(diagnostics: Iterable[Diagnostic], style: str = "text") -> str:
    """Render all diagnostics, sorted by place, in one of the FORMATS."""
    ordered = sorted(set(diagnostics))
    if style == "json":
        return json.dumps([_diagnostic_to_record(each) for each in ordered], indent=2)
    if style == "github":
        return "\n".join(_format_annotation(each) for each in ordered)
    blocks = [_format_paragraph(each) for each in ordered]
    return "\n\n".join([*blocks, _format_count(ordered)]) if blocks else ""


def suggest(wrong: str, allowed: Iterable[str]) -> str:
    """Suggest a name for an undefined one: the closest, or else a list of those there are."""
    names = sorted(set(allowed))
    if found := find_closest(wrong, names):
        return f"Did you mean '{found}'?"
    more = ", …" if len(names) > _NAMES_SHOWN else ""
    return f"Known: {', '.join(names[:_NAMES_SHOWN])}{more}." if names else ""


def find_closest(wrong: str, names: Iterable[str]) -> str:
    """Find the name that was probably meant; empty if none is close."""
    known = sorted(set(names))
    same = [name for name in known if name.casefold() == wrong.casefold()]
    return (same or difflib.get_close_matches(wrong, known, n=1, cutoff=0.5) or [""])[0]


def _format_paragraph(each: Diagnostic) -> str:
    lines = [f"{each.place}: {each.severity} {each.code}: {each.message}"]
    if each.place.source.strip():
        lines += _format_quotation(each.place)
    if each.hint:
        lines.append(f"  hint: {each.hint}")
    return "\n".join(lines)


def _format_quotation(place: Place) -> list[str]:
    """Format the source line with the value underlined; a long line is cut around it."""
    text = "".join(each if each.isprintable() else " " for each in place.source)
    start = place.column - 1
    cut = max(0, start - _WIDTH // 2) if start + place.length > _WIDTH else 0
    text, start = text[cut : cut + _WIDTH], start - cut
    gutter = f"{place.line:>5} | "
    underline = "^" * max(1, min(place.length, len(text) - start))
    return [(gutter + text).rstrip(), " " * (len(gutter) + start) + underline]


def _format_count(ordered: Sequence[Diagnostic]) -> str:
    errors = sum(each.severity == "error" for each in ordered)
    counts = ((errors, "error"), (len(ordered) - errors, "warning"))
    return ", ".join(f"{number} {word}{'s' if number != 1 else ''}" for number, word in counts if number)


def _diagnostic_to_record(each: Diagnostic) -> dict[str, object]:
    place = asdict(each.place)
    place.pop("source")
    return {"code": each.code, "severity": each.severity, **place, "message": each.message, "hint": each.hint}


def _format_annotation(each: Diagnostic) -> str:
    place, text = each.place, _escape(f"{each.message} {each.hint}".strip())
    file = _escape(place.file).replace(":", "%3A").replace(",", "%2C")
    end = place.column + place.length
    where = f"file={file},line={place.line},col={place.column},endColumn={end}"
    return f"::{each.severity} {where},title={each.code}::{text}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
