"""A system that uses every word for buckets: plants, and the gardeners who water them."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import generated
from runtime.call import Call
from runtime.node.settings import read
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.s3.client.location import BucketLocation
from runtime.stores.s3.store import S3Store
from tests.runtime.hand_world import Lines
from tests.runtime.stores.s3.kit import OtherTime, TestWorld
from tests.support.s3.fixtures import Bucket
from tests.support.specs.modules import generate_modules

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What is generated of its spec."""
    root = tmp_path_factory.mktemp("nursery")
    shutil.copytree(ROOT / "tests/specs/nursery", root / "spec/nursery")
    generate_modules(root)
    folder = root / "generated"
    generated.__path__.append(str(folder))
    yield importlib.import_module("generated.nursery.system").SYSTEM
    generated.__path__.remove(str(folder))


class Garden:
    """One process with plants and gardeners."""

    def __init__(self, system: Any, bucket: Bucket) -> None:
        self.bucket = bucket
        self.world = TestWorld()
        self.log = Log("test", "DEBUG", self.world, Lines())
        self.plant, self.gardener = system.lifecycles["plant"], system.lifecycles["gardener"]
        self.words: Any = importlib.import_module("generated.nursery.messages")
        self.records: Any = importlib.import_module("generated.nursery.records")
        kinds = ("int", "number", "choice", "bool")
        values = read([each for each in system.variables.values() if each.type in kinds], (), {}, {})
        place = BucketLocation(bucket=bucket.name, endpoint=bucket.endpoint, prefix="green/")
        self.objects = OtherTime(place)
        given = (self.objects, self.world, Metrics(), values)
        self.plants: S3Store[Any] = S3Store(system, self.plant, self.plant.record, *given)
        self.gardeners: S3Store[Any] = S3Store(system, self.gardener, self.gardener.record, *given)

    async def move(self, key: str, source: int, target: int, actor: str) -> Any:
        edge = self.plants.edge_between(source, target, self.call(actor))
        return await self.plants.transition(key, edge.name, self.call(actor))

    def call(self, actor: str) -> Call:
        return Call(world=self.world, log=self.log, caller=actor)

    async def sow(self, **fields: Any) -> Any:
        care = self.records.Care(first_ms=50, most_ms=2000, factor=3.0, name="gentle")
        usual = {"plant_id": "", "species": "fern", "tending_seconds": 5, "most_forgotten": 1, "care": care}
        record = self.records.PlantRecord(**{**usual, "description": "{}", **fields})
        made = (await self.plants.create(record, self.call("client"))).record
        await self.plants.drain_indexes()
        return made

    def raw(self, key: str) -> Any:
        told = self.bucket.raw.get_object(Bucket=self.bucket.name, Key=f"green/{key}")
        return json.loads(told["Body"].read())


@pytest.fixture
async def garden(nursery: Any, bucket: Bucket) -> AsyncIterator[Garden]:
    made = Garden(nursery, bucket)
    yield made
    await made.plants.drain_indexes()
    await made.objects.close()


async def test_what_a_plant_is_in_the_bucket(garden: Garden) -> None:
    """Lists, maps and messages are as JSON has them; the key is made from the label."""
    plant = await garden.sow(
        label="by the door", tags=("a", "b"), prices={"pot": 1.5}, bed=garden.words.SHADY
    )
    assert plant.corner == plant.plant_id[:2]
    shown = garden.raw(f"plants/{plant.corner}/{plant.plant_id}.json")
    assert (shown["state"], shown["bed"], shown["layout"], shown["writes"]) == ("Dry", "SHADY", 3, 1)
    assert (shown["tags"], shown["prices"], shown["first_label"]) == (["a", "b"], {"pot": 1.5}, "by the door")
    assert shown["care"] == {"first_ms": 50, "most_ms": 2000, "factor": 3.0, "mood": 0.0, "name": "gentle"}
    found = await garden.plants.get(plant.plant_id)
    assert found == plant
    assert [key.split("/")[1:3] for key in garden.bucket.keys("green/dry/")] == [["dry", plant.corner]]
    again = garden.records.PlantRecord(plant_id="", species="moss", label="by the door")
    assert (await garden.plants.create(again, garden.call("client")))[:2] == (found, False)


async def test_a_plant_is_tended_forgotten_and_withers(garden: Garden) -> None:
    """By waits of its own, and by the edge that takes the place of the one that failed too often."""
    plant = await garden.sow()
    shed, words = garden.call("shed"), garden.words
    assert await garden.plants.claim("Ann", 1, shed, capabilities=["moss"]) == []
    for turn in (1, 2):
        [taken] = await garden.plants.claim("Ann", 1, shed, capabilities=["fern"])
        assert (taken.gardener, taken.turn, taken.plant_id) == ("Ann", turn, plant.plant_id)
        await garden.plants.drain_indexes()
        garden.world.ahead_ms += 6_000
        assert await garden.plants.run_due("forget", garden.call("warden")) == 1
        found = await garden.plants.get(plant.plant_id)
        assert found is not None and found.note == f"Ann forgot it (turn {turn})"
        waits = (found.thirsty_at - found.changed_at).total_seconds()
        assert (found.state, waits > 0) == ((words.DRY, True) if turn == 1 else (words.WITHERED, False))
        garden.world.ahead_ms += 1_000
    assert (await garden.move(plant.plant_id, words.WITHERED, words.DRY, "visitor")).applied
    found = await garden.plants.get(plant.plant_id)
    assert found is not None and (found.forgotten, found.gardener, found.turn) == (0, None, 2)


async def test_edges_by_name_and_with_conditions(garden: Garden) -> None:
    plant = await garden.sow(description=json.dumps("leaf " * 20_000))
    shed, words = garden.call("shed"), garden.words
    [taken] = await garden.plants.claim("Ann", 1, shed)
    assert json.loads(taken.description) == "leaf " * 20_000
    assert garden.bucket.keys("green/leaves/") == [f"green/leaves/{plant.plant_id}/description.json"]
    held, height = LeaseProof("Ann", 1), {"height": "3.50"}
    measured = await garden.plants.transition(plant.plant_id, "measure", shed, lease=held, given=height)
    assert measured.applied
    down = LeaseSettlement(plant.plant_id, held, "put_down")
    assert await garden.plants.settle_many([down], shed) == [words.DRY]
    found = await garden.plants.get(plant.plant_id)
    assert found is not None and (found.note, found.forgotten, found.height) == ("evening", 0, "3.50")
    [taken] = await garden.plants.claim("Ann", 1, shed)
    assert taken.height is None
    blooming = garden.plant.edges[words.TENDED, words.BLOOMING].name
    done = LeaseSettlement(plant.plant_id, LeaseProof("Ann", 2), blooming, {"note": "wet"})
    assert await garden.plants.settle(done, shed) == words.BLOOMING
    assert (await garden.move(plant.plant_id, words.BLOOMING, words.STORED, "client")).applied
    assert not (await garden.move(plant.plant_id, words.STORED, words.WITHERED, "client")).applied
    assert (await garden.move(plant.plant_id, words.STORED, words.BLOOMING, "client")).applied
    second = await garden.sow()
    [taken] = await garden.plants.claim("Ann", 1, shed)
    assert (await garden.move(second.plant_id, words.TENDED, words.WITHERED, "client")).applied
    found = await garden.plants.get(second.plant_id)
    assert found is not None and (found.note, found.gardener) == ("unwanted", "Ann")


async def test_a_gardener_has_neither_parts_nor_leases(garden: Garden) -> None:
    ann, shed = garden.records.GardenerRecord(gardener_id="Ann"), garden.call("shed")
    assert (await garden.gardeners.create(ann, shed)).is_new
    given = {"plants": ("p", "q"), "watered": 2}
    assert (await garden.gardeners.transition("Ann", "wave", shed, given=given)).applied
    assert [each.plants for each in (await garden.gardeners.find()).records] == [("p", "q")]
    await garden.gardeners.open(garden.log, ["shed"])
    assert (await garden.gardeners.delete("Ann", garden.words.AT_WORK, shed)).applied
    assert await garden.gardeners.get("Ann") is None
