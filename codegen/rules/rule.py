"""The shape of a rule: what it is about, an example of both sides, and the function that finds breaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from codegen.diagnostics import Diagnostic, Place, Severity, suggest
from codegen.spec import Spec


@dataclass(frozen=True, slots=True)
class Finding:
    """A breach: where, one sentence, and a way out."""

    place: Place
    message: str
    hint: str = ""


Search = Callable[[Spec], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing a spec must hold to. `wrong` and `right` are the examples of the catalogue."""

    code: str
    meaning: str
    wrong: str
    right: str
    search: Search
    severity: Severity = "error"
    needs_whole: bool = False

    def find(self, spec: Spec) -> Iterator[Diagnostic]:
        for each in self.search(spec):
            yield Diagnostic(each.place, self.code, each.message, each.hint, self.severity)


def rule(
    code: str, meaning: str, *, wrong: str, right: str, severity: Severity = "error", needs_whole: bool = False
) -> Callable[[Search], Rule]:
    """Makes a rule of the function that searches for breaches.

    `needs_whole` is for rules that say something is missing: they stay silent while other parts of the spec
    are too broken to be read, because what is missing may be in there.
    """

    def wrap(search: Search) -> Rule:
        return Rule(code, meaning, wrong, right, search, severity, needs_whole)

    return wrap


def unknown(spec: Spec, place: Place, subject: str, name: str, known: object) -> Iterator[Finding]:
    """A finding for a name that nothing defines; silent if its definition was too broken to be read."""
    names = list(known) if hasattr(known, "__iter__") else []
    if name not in names and name not in spec.dropped:
        yield Finding(place, f"{subject} '{name}', which is not defined.", suggest(name, names))
