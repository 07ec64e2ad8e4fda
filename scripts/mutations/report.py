"""What became of the mutations: a summary, and the table of the decision record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "<!-- mutations -->", "<!-- end of mutations -->"
_MARKS = {"differential": "d", "contract": "c", "": "**no**", "stale": "stale"}


class MutationOutcome(NamedTuple):
    """One mutation in one engine, and the suite that found it."""

    engine: str
    word: str
    title: str
    found: str


def summarize(outcomes: Sequence[MutationOutcome]) -> Iterator[str]:
    """Count them by engine, and name those that nothing has found."""
    for engine in sorted({each.engine for each in outcomes}):
        counts = Counter(each.found for each in outcomes if each.engine == engine)
        by = f"{counts['differential']} by the differential test, {counts['contract']} by the contract suite"
        rest = f"not found {counts['']}, stale {counts['stale']}"
        yield f"{engine}: {counts.total()} mutations, found {by}, {rest}"
    for each in outcomes:
        if each.found in ("", "stale"):
            yield f"{'not found' if not each.found else each.found}: {each.engine}, {each.word}: {each.title}"


def render_table(page: Path, outcomes: Sequence[MutationOutcome]) -> None:
    """Write the table between its marks."""
    engines = [*dict.fromkeys(each.engine for each in outcomes)]
    cells: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in outcomes:
        cells[each.word][each.engine].append(_MARKS[each.found])
    lines = [f"| word | {' | '.join(sorted(engines))} |", "|---" * (len(engines) + 1) + "|"]
    for word in sorted(cells):
        row = [" ".join(sorted(cells[word][engine])) for engine in sorted(engines)]
        lines.append(f"| `{word}` | {' | '.join(row)} |")
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{tail}", encoding="utf-8")
