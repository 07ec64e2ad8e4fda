"""No name of a field stands in the way of what is done to an object: names of the engine are tried as one."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from runtime.call import Call
from runtime.node.settings import read
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.s3.client.location import BucketLocation
from runtime.stores.s3.store import S3Store
from tests.runtime.hand_world import Lines
from tests.runtime.stores.s3.kit import OtherTime, TestWorld
from tests.support.s3.fixtures import Bucket
from tests.support.specs.reserved_words import fields_of, texts_below, words_of
from tests.support.specs.widened_spec import generate_widened

ROOT = Path(__file__).parents[4]


async def test_every_word_of_the_engine(tmp_path: Path, bucket: Bucket) -> None:
    """There are no statements here, so that the names are those of the engine itself and of the records."""
    words = fields_of(words_of([*texts_below(ROOT / "runtime/stores/s3", ".py"), RECORDS.read_text()]))
    assert {"field", "datetime", "etag", "key", "record", "self", "others", "given"} <= words
    with generate_widened(ROOT / "tests/specs/nursery", tmp_path, "nursery_words", "Plant", words) as more:
        records: Any = importlib.import_module("generated.nursery_words.records")
        states: Any = importlib.import_module("generated.nursery_words.messages")
        system: Any = importlib.import_module("generated.nursery_words.system").SYSTEM
        kinds = ("int", "number", "choice", "bool")
        values = read([each for each in system.variables.values() if each.type in kinds], (), {}, {})
        world = TestWorld()
        log = Log("test", "DEBUG", world, Lines())
        objects = OtherTime(BucketLocation(bucket=bucket.name, endpoint=bucket.endpoint, prefix="green/"))
        lifecycle = system.lifecycles["plant"]
        plants: Any = S3Store(system, lifecycle, lifecycle.record, objects, world, Metrics(), values)
        given = {each: f"the {each}" for each in more}
        care = records.Care(first_ms=50, most_ms=2000, factor=3.0)
        plant = records.PlantRecord(plant_id="", species="fern", tending_seconds=5, care=care, **given)
        try:
            made = (await plants.create(plant, Call(world=world, log=log, caller="client"))).record
            await plants.drain_indexes()
            shed = Call(world=world, log=log, caller="shed")
            (taken,) = await plants.claim("g1", 1, shed, capabilities=["fern"])
            assert taken.state == states.TENDED
            for each in (made, taken, await plants.get(made.plant_id)):
                assert {name: getattr(each, name) for name in more} == given
        finally:
            await plants.drain_indexes()
            await objects.close()


RECORDS = ROOT / "codegen/templates/python/records.py.j2"
