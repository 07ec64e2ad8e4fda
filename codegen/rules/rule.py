"""A rule: its code and meaning, an example of wrong and right, and the function that finds breaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from codegen.diagnostics import Diagnostic, Place, Severity, suggest
from codegen.source.spec import Spec


@dataclass(frozen=True, slots=True)
class Finding:
    """A breach of a rule: place, message and hint; `missing` is the undefined name, if any."""

    place: Place
    message: str
    hint: str = ""
    missing: str = ""


Check = Callable[[Spec], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint on a spec. `wrong` and `right` are the examples of the catalogue."""

    code: str
    meaning: str
    wrong: str
    right: str
    check: Check
    severity: Severity = "error"
    needs: tuple[str, ...] = ()
    spreads: bool = False

    def find(self, spec: Spec) -> list[Diagnostic]:
        """Find the breaches; an undefined name that several places use makes one diagnostic."""
        groups: dict[object, list[Finding]] = {}
        for each in dict.fromkeys(self.check(spec)):
            groups.setdefault(each.missing or each, []).append(each)
        return [self._merge(sorted(each, key=lambda finding: finding.place)) for each in groups.values()]

    def _merge(self, findings: list[Finding]) -> Diagnostic:
        """Merge the findings of one cause into a diagnostic at the first place."""
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
) -> Callable[[Check], Rule]:
    """Make a rule of the function that finds its breaches.

    One cause shall give one complaint. A rule that says something is missing or unused therefore `needs` the
    files where it could be: it stays silent while one of them has parts that cannot be read, or has a finding
    of a rule that `spreads`, such as a misspelt name.
    """

    def wrap(check: Check) -> Rule:
        return Rule(code, meaning, wrong, right, check, severity, needs, spreads)

    return wrap


def report_unknown(
    spec: Spec,
    place: Place,
    subject: str,
    name: str,
    known: Iterable[str],
    lack: str = "which is not defined",
) -> Iterator[Finding]:
    """Report a name that is not defined, unless its definition could not be read."""
    names = list(known)
    if name not in names and name not in spec.dropped:
        yield Finding(place, f"{subject} '{name}', {lack}.", suggest(name, names), f"{name}, {lack}")


def report_unknown_method(spec: Spec, place: Place, subject: str, ref: str) -> Iterator[Finding]:
    """Report a `Service.Method` that no service has."""
    service_name, _, name = ref.partition(".")
    if ref in spec.methods or {service_name, name} & spec.dropped:
        return
    service = spec.services.services.get(service_name)
    hint = suggest(name, service.methods) if service else suggest(ref, spec.methods)
    yield Finding(place, f"{subject} '{ref}', which no service has.", hint, ref if service else service_name)
