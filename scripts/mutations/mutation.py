"""A mutation: a small change of the text of a file that gives a word another meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

Texts = Mapping[str, tuple[str, str] | list[tuple[str, str]]]
"""By word: what is replaced by what; a list has more than one mutation of the word."""


class Mutation(NamedTuple):
    """One mutation of one file."""

    word: str
    path: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Change the file; raises where the text is not there, or more than once."""
        path = root / self.path
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise LookupError(
                f"{self.path} has {text.count(self.old)} times what {self.word} changes: {self.old}"
            )
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")

    @property
    def title(self) -> str:
        """The change in one line."""
        return f"{Path(self.path).name}: {_shorten(self.old)} -> {_shorten(self.new)}"


def list_mutations(path: str, texts: Texts) -> Iterator[Mutation]:
    """List the mutations of one file."""
    for word, changes in texts.items():
        for old, new in changes if isinstance(changes, list) else [changes]:
            yield Mutation(word, path, old, new)


def _shorten(text: str) -> str:
    return " ".join(text.split())[:60] or "nothing"
