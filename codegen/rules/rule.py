"""The shape of a rule: what it is about, an example of both sides, and the function that finds breaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from codegen.diagnostics import Diagnostic, Place, Severity, suggest
from codegen.source.spec import Spec


@dataclass(frozen=True, slots=True)
class Finding:
    """A breach: where, one sentence, and a way out; `missing` is the name that is not known, if any."""

    place: Place
    message: str
    hint: str = ""
    missing: str = ""


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
    needs: tuple[str, ...] = ()
    spreads: bool = False

    def find(self, spec: Spec) -> list[Diagnostic]:
        """The breaches as complaints; a name that is missing in several places makes one complaint."""
        groups: dict[object, list[Finding]] = {}
        for each in dict.fromkeys(self.search(spec)):
            groups.setdefault(each.missing or each, []).append(each)
        return [self._complaint(sorted(each, key=lambda finding: finding.place)) for each in groups.values()]

    def _complaint(self, findings: list[Finding]) -> Diagnostic:
        first, *others = findings
        elsewhere = [each.place for each in others if each.place != first.place]
        places = [f"{PurePosixPath(each.file).name}:{each.line}" for each in elsewhere]
        also = f" The same name is at {', '.join(dict.fromkeys(places))}." if places else ""
        return Diagnostic(first.place, self.code, first.message, (first.hint + also).strip(), self.severity)


def rule(
    code: str,
    meaning: str,
    *,
    wrong: str,
    right: str,
    severity: Severity = "error",
    needs: tuple[str, ...] = (),
    spreads: bool = False,
) -> Callable[[Search], Rule]:
    """Makes a rule of the function that searches for breaches.

    One cause shall give one complaint. A rule that says something is missing or unused therefore `needs` the
    files where it could be: it stays silent while one of them has parts that cannot be read, or has a finding
    of a rule that `spreads`, such as a misspelt name.
    """

    def wrap(search: Search) -> Rule:
        return Rule(code, meaning, wrong, right, search, severity, needs, spreads)

    return wrap


def unknown(
    spec: Spec,
    place: Place,
    subject: str,
    name: str,
    known: Iterable[str],
    lack: str = "which is not defined",
) -> Iterator[Finding]:
    """A finding for a name that nothing defines; silent if its definition was too broken to be read."""
    names = list(known)
    if name not in names and name not in spec.dropped:
        yield Finding(place, f"{subject} '{name}', {lack}.", suggest(name, names), f"{name}, {lack}")


def unknown_method(spec: Spec, place: Place, subject: str, ref: str) -> Iterator[Finding]:
    """A finding for a `Service.Method` that no service has."""
    service_name, _, name = ref.partition(".")
    if ref in spec.methods or {service_name, name} & spec.dropped:
        return
    service = spec.services.services.get(service_name)
    hint = suggest(name, service.methods) if service else suggest(ref, spec.methods)
    yield Finding(place, f"{subject} '{ref}', which no service has.", hint, ref if service else service_name)
