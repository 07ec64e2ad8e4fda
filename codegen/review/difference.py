"""What a difference between two specs is, and the shape of a kind of difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from codegen.review.form import Path
from codegen.source.spec import Spec


class Verdict(StrEnum):
    """What a difference means to those who rely on the accepted form; the gravest comes first."""

    FROZEN = "frozen"
    WIRE = "breaking (wire)"
    STORED = "breaking (stored data)"
    BEHAVIOUR = "breaking (behaviour)"
    CONFIGURATION = "breaking (configuration)"
    WIDENS = "widens access"
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True)
class Difference:
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
        """Words about the spec may change freely; what it says may not."""
        return self.kind != "wording"


class Found:
    """A finding of a kind: what it is about, the sentence, and the parts of the form that it explains."""

    def __init__(self, subject: str, sentence: str, *paths: Path, verdict: Verdict | None = None) -> None:
        self.subject = subject
        self.sentence = sentence
        self.paths = paths
        self.verdict = verdict


Search = Callable[[Spec, Spec], Iterator[Found]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One way in which two specs can differ; `verdict` holds where a finding does not say otherwise."""

    id: str
    meaning: str
    verdict: Verdict
    search: Search

    def find(self, old: Spec, new: Spec) -> Iterator[Difference]:
        for each in self.search(old, new):
            yield Difference(
                f"{self.id} {each.subject}", each.sentence, each.verdict or self.verdict, each.paths
            )


def kind(name: str, meaning: str, verdict: Verdict) -> Callable[[Search], Kind]:
    """Makes a kind of the function that finds its differences."""

    def wrap(search: Search) -> Kind:
        return Kind(name, meaning, verdict, search)

    return wrap
