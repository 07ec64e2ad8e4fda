"""Lifecycles of tests as spec text: what is generated from it means what the test says."""

from __future__ import annotations

from random import Random

import pytest

from runtime.model.lifecycles import Lifecycle
from runtime.stores.layouts.sqlite import KeptInSqlite
from tests.support.stores.lifecycles import ALL, ERRAND
from tests.support.stores.random_lifecycles import VARIABLES as DRAWN_VARIABLES
from tests.support.stores.random_lifecycles import draw_lifecycle
from tests.support.stores.records import VARIABLES, ErrandRecord
from tests.support.stores.spec_text import EMITTERS, compile_lifecycle

ENGINES = sorted(EMITTERS)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lifecycle", ALL, ids=lambda each: each.entity)
def test_a_generated_lifecycle_means_the_same(engine: str, lifecycle: Lifecycle) -> None:
    compiled = compile_lifecycle(engine, lifecycle, VARIABLES)
    assert len(compiled.artefacts) >= len(EMITTERS[engine])
    assert compiled.lifecycles[lifecycle.entity].engine == engine
    assert compiled.lifecycles[lifecycle.entity].record is lifecycle.record


@pytest.mark.parametrize("engine", ENGINES)
def test_a_drawn_lifecycle_means_the_same(engine: str) -> None:
    for seed in range(40):
        compile_lifecycle(engine, draw_lifecycle(Random(seed)), DRAWN_VARIABLES)


def test_every_physical_name_has_a_default() -> None:
    compiled = compile_lifecycle("sqlite", ERRAND, VARIABLES)
    kept = compiled.lifecycles["errand"].stored_as(KeptInSqlite)
    assert kept is not None
    assert (kept.path, kept.table) == ("DATABASE_PATH", "errands")
    assert "CREATE TABLE errand_history" in compiled.artefacts["generated/shop/sqlite/schema.sql"]
    assert compiled.lifecycles["errand"].record is ErrandRecord
