"""Write `docs/reference/engine-words.md`: the words of a lifecycle by storage engine (`nox -s words`).

The words come from the models of the language, and what an engine limits from the engine itself. That each
word is in the contract suite, which every engine passes, is a test: `tests/stores/test_engine_words.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from codegen.emit.docs.markdown import code, format_table
from codegen.language import leases, lifecycle
from codegen.language.base import Part
from runtime.stores.engine import list_engines

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "engine-words.md"
PARTS: Mapping[str, type[Part]] = {
    "": lifecycle.Entity,
    "create": lifecycle.Creation,
    "delete": lifecycle.Deletion,
    "lease": leases.Lease,
    "lease.holder": leases.Holder,
    "transitions": lifecycle.Transition,
    "updates": lifecycle.Update,
    "from_request": lifecycle.Take,
    "backoff": lifecycle.Backoff,
    "dead_letter": lifecycle.DeadLetter,
    "due": lifecycle.Due,
}
"""Parts of a lifecycle by the key that has them."""
_NO_MEANING = {
    *("doc", "trigger", "record", "held_by", "shared_with", "driven_by", "via", "every"),
    *("terminal_race", "failed", "public_status", "booked"),
}
"""Words for readers, components, clients and names: no store goes by them."""
_ORDER_OF_CALLS = "transitions.after"
"""Kept by the typed client of the actor."""
_TITLES = {
    "memory": "memory",
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "redis": "Redis",
    "s3": "S3",
}
_INTRODUCTION = """\
# Words by engine

Every word of a lifecycle that says what an entity means, and the engines that have it. Each engine passes
the same contract suite (`tests/stores/`), which has every word of this table, and a differential test
against the [semantics](../explanation/stores.md). A number is a sentence below the table: what the word means
less there.

Generated from the models of the language and from the engines. Do not edit; run `nox -s words`.
"""


def list_words() -> list[str]:
    """List the words that have a meaning in a store, as `create.ceiling`."""
    return [
        f"{part}.{name}".lstrip(".")
        for part, model in PARTS.items()
        for name in _list_keys(model)
        if name not in _NO_MEANING | PARTS.keys() and f"{part}.{name}" not in (*PARTS, _ORDER_OF_CALLS)
    ]


def _list_keys(model: type[Part]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name.rstrip("_")


def render_page() -> str:
    """Render the whole page."""
    engines = {name: list_engines()[name] for name in _TITLES}
    sentences: list[str] = []
    rows = []
    for word in list_words():
        cells = []
        for name, engine in engines.items():
            sentence = getattr(engine, "limits", {}).get(word)
            if sentence is not None:
                sentences.append(f"{len(sentences) + 1}. {code(word)} in {_TITLES[name]}: {sentence}")
            cells.append("yes" if sentence is None else f"({len(sentences)})")
        rows.append((code(word), *cells))
    table = format_table(("word", *_TITLES.values()), rows)
    return "\n".join((_INTRODUCTION, table, "", *sentences, ""))


def main() -> None:
    """Write the page."""
    PAGE.write_text(render_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
