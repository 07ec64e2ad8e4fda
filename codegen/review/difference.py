"""Differences between two specs, their verdicts, and kinds of difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from codegen.review.form import Path
from codegen.source.spec import Spec


class Verdict(StrEnum):
    """The impact of a difference on users of the accepted form; the gravest comes first."""

    FROZEN = "frozen"
    WIRE = "breaking (wire)"
    STORED = "breaking (stored data)"
    BEHAVIOUR = "breaking (behaviour)"
    CONFIGURATION = "breaking (configuration)"
    WIDENS = "widens access"
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True)
class SpecDifference:
    """One difference, under an id that a change record can name."""

    id: str
    sentence: str
    verdict: Verdict
    paths: tuple[Path, ...] = field(default=(), compare=False, repr=False)

    @property
    def kind(self) -> str:
        return self.id.partition(" ")[0]

    @property
    def needs_record(self) -> bool:
        """Whether a change record must cover it; only changes of wording need none."""
        return self.kind != "wording"


class SpecChange:
    """A change that a kind has found: subject, sentence, and the paths of the form that it explains."""

    def __init__(self, subject: str, sentence: str, *paths: Path, verdict: Verdict | None = None) -> None:
        self.subject = subject
        self.sentence = sentence
        self.paths = paths
        self.verdict = verdict


Detector = Callable[[Spec, Spec], Iterator[SpecChange]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of difference; `verdict` applies unless a change has its own."""

    id: str
    meaning: str
    verdict: Verdict
    detect: Detector

    def find(self, old: Spec, new: Spec) -> Iterator[SpecDifference]:
        """Find the differences of this kind."""
        for each in self.detect(old, new):
            yield SpecDifference(
                f"{self.id} {each.subject}", each.sentence, each.verdict or self.verdict, each.paths
            )


def kind(name: str, meaning: str, verdict: Verdict) -> Callable[[Detector], Kind]:
    """Make a kind of the function that finds its changes."""

    def wrap(detect: Detector) -> Kind:
        return Kind(name, meaning, verdict, detect)

    return wrap
