"""The table of words by engine: it is fresh, complete, and each of its words is in the contract suite."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from runtime.stores.engine import list_engines
from scripts.engine_words import PAGE, PARTS, list_words, render_page
from tests.support.stores.lifecycles import ALL
from tests.support.stores.random_lifecycles import draw_lifecycle
from tests.support.stores.spec_entities import describe_entity

MOST_LIMITS = 3
DRAWN = 60


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page()


def test_the_limits_are_few_and_about_words_that_there_are() -> None:
    limits = [(name, word) for name, each in list_engines().items() for word in getattr(each, "limits", {})]
    assert {word for _, word in limits} <= set(list_words())
    assert len(limits) <= MOST_LIMITS


def test_the_contract_suite_has_every_word() -> None:
    """A word that no lifecycle of the suite uses would be proven on no engine."""
    drawn = [draw_lifecycle(Random(seed)) for seed in range(DRAWN)]
    used = {word for each in (*ALL, *drawn) for word in _find_words(describe_entity(each).entity)}
    assert set(list_words()) - used == set()


def _find_words(entity: dict[str, Any]) -> Iterator[str]:
    """Find the words of an entity, each under the part that it belongs to."""
    yield from entity
    for part in ("create", "delete", "lease"):
        yield from _find_in_part(part, entity.get(part) or {})
    yield from _find_in_part("lease.holder", (entity.get("lease") or {}).get("holder") or {})
    for part in ("transitions", "updates"):
        for change in (entity.get(part) or {}).values():
            yield from _find_in_part(part, change)


def _find_in_part(part: str, data: dict[str, Any]) -> Iterator[str]:
    yield from (f"{part}.{key}" for key in data)
    for key, value in data.items():
        if key == "from_request":
            for take in value.values():
                yield from (f"from_request.{each}" for each in take)
        elif key in PARTS and key != "lease":
            for each in value if isinstance(value, list) else [value]:
                yield from (f"{key}.{word}" for word in each)
