"""Layouts of entities: names of storage.yaml where it has some, and defaults on every engine."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from codegen.emit.python import lifecycle, storage
from codegen.language.deployments import DeploymentsFile
from codegen.language.storage.layouts import ENGINES, KeptInPostgres, KeptInRedis, KeptInS3
from codegen.source.spec import Spec
from tests.support.codegen.specs import change_spec, spec, texts

BAKERY, NURSERY, RENTAL = (f"tests/specs/{name}" for name in ("bakery", "nursery", "rental"))


def on_engine(of: Spec, engine: str) -> Spec:
    """The spec with all deployments on an engine."""
    rows = {name: row.model_copy(update={"engine": engine}) for name, row in of.deployments.root.items()}
    return replace(of, deployments=DeploymentsFile(rows))


def without_names(of: Spec) -> Spec:
    return change_spec(of, "storage", lambda data: data.clear())


@pytest.mark.parametrize("engine", [*ENGINES, "memory"])
@pytest.mark.parametrize("folder", [BAKERY, NURSERY, RENTAL])
def test_an_entity_without_names_has_a_layout_on_every_engine(folder: str, engine: str) -> None:
    of = without_names(on_engine(spec(folder), engine))
    assert {row.kept_in.store for row in of.lifecycle.entities.values()} == {"memory"}
    placed = of.placed_by(engine)
    for name, row in placed.lifecycle.entities.items():
        assert row.kept_in.store == engine
        assert not row.kept_in.is_named
        assert row.kept_in.words == of.lifecycle.entities[name].kept_in.words
    found = texts(storage.emit, of)
    assert bool(found) == (engine != "memory")
    for text in (*found.values(), *texts(lifecycle.emit, of).values()):
        ast.parse(text)


def test_names_of_several_engines_are_used_by_the_deployments_of_each() -> None:
    """The lifecycle has the layout of one; what is named for another is used where a deployment has it."""

    def name_tables(data: Any) -> None:
        data["postgres"] = {"entities": {"bike": {"table": "cycles"}}}

    of = on_engine(change_spec(spec(RENTAL), "storage", name_tables), "postgres")
    assert isinstance(of.lifecycle.entities["bike"].kept_in, KeptInRedis)
    bike, van = (of.placed_by("postgres").lifecycle.entities[name].kept_in for name in ("bike", "van"))
    assert isinstance(bike, KeptInPostgres) and isinstance(van, KeptInPostgres)
    assert (bike.table, bike.history) == ("cycles", "bike_history")
    assert (van.table, van.history) == ("vans", "van_history")
    (text,) = texts(storage.emit, of).values()
    assert 'table="cycles"' in text


def test_layouts_that_a_deployment_alone_has_keep_their_names() -> None:
    """Keys in Redis, where the lifecycles have objects of a bucket."""

    def name_keys(data: Any) -> None:
        data["redis"] = {"entities": {"plant": {"hash": "plants:{plant_id}", "sequence": "writes"}}}

    of = on_engine(change_spec(spec(NURSERY), "storage", name_keys), "redis")
    assert isinstance(of.lifecycle.entities["plant"].kept_in, KeptInS3)
    (text,) = texts(storage.emit, of).values()
    assert 'hash="plants:{plant_id}"' in text
    ast.parse(text)


def test_a_layout_of_a_bucket_may_be_that_of_a_deployment_alone() -> None:
    """One entity has names in a file and in the bucket; the bucket comes first where both are named."""
    of = spec(NURSERY)
    assert {row.kept_in.store for row in of.lifecycle.entities.values()} == {"s3"}
    assert of.moved_to == ()
    assert on_engine(of, "sqlite").moved_to == ("sqlite",)


def test_an_index_has_a_key_for_each_value_that_it_goes_by() -> None:
    def rename(data: Any) -> None:
        del data["redis"]["entities"]["bike"]["indexes"]

    of = change_spec(spec(RENTAL), "storage", rename)
    indexes = of.lifecycle.entities["bike"].in_redis.indexes  # type: ignore[union-attr]
    waiting = indexes["waiting"]
    assert waiting.key == "bike:index:waiting:{urgency}"
    assert waiting.parts is not None
    assert (waiting.parts.key, waiting.parts.known) == (
        "bike:parts:waiting:{urgency}:{signature}",
        "bike:needs:waiting",
    )
    assert indexes["lost"].key == "bike:index:lost"
