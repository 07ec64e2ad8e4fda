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
from runtime.call.conditions import Condition
from runtime.node.settings import read
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.s3.client.place import Place
from runtime.stores.s3.store import S3Store
from runtime.stores.store import Held, Settling
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
        place = Place(bucket=bucket.name, endpoint=bucket.endpoint, prefix="green/")
        self.objects = OtherTime(place)
        self.plants: S3Store[Any] = S3Store(system, self.plant, self.objects, self.world, Metrics(), values)
        self.gardeners: S3Store[Any] = S3Store(
            system, self.gardener, self.objects, self.world, Metrics(), values
        )

    def call(self, actor: str) -> Call:
        return Call(world=self.world, log=self.log, caller=actor)

    async def sow(self, **fields: Any) -> Any:
        care = self.records.Care(first_ms=50, most_ms=2000, factor=3.0, name="gentle")
        usual = {"plant_id": "", "species": "fern", "tending_seconds": 5, "most_forgotten": 1, "care": care}
        made = await self.plants.create(
            self.records.PlantRecord(**{**usual, "description": "{}", **fields}), self.call("client")
        )
        await self.plants.drained()
        return made

    def raw(self, key: str) -> Any:
        told = self.bucket.raw.get_object(Bucket=self.bucket.name, Key=f"green/{key}")
        return json.loads(told["Body"].read())


@pytest.fixture
async def garden(nursery: Any, bucket: Bucket) -> AsyncIterator[Garden]:
    made = Garden(nursery, bucket)
    yield made
    await made.plants.drained()
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
    with pytest.raises(Condition):
        await garden.plants.create_or_find(again, garden.call("client"))


async def test_a_plant_is_tended_forgotten_and_withers(garden: Garden) -> None:
    """By waits of its own, and by the edge that takes the place of the one that failed too often."""
    plant = await garden.sow()
    taking = garden.plants.taking(kinds=["fern"])
    other = garden.plants.taking(kinds=["moss"])
    shed, words = garden.call("shed"), garden.words
    assert (await other.exchange("Ann", [], 1, shed)).taken == []
    for turn in (1, 2):
        [taken] = (await taking.exchange("Ann", [], 1, shed)).taken
        assert (taken.gardener, taken.turn, taken.plant_id) == ("Ann", turn, plant.plant_id)
        await garden.plants.drained()
        garden.world.ahead_ms += 6_000
        forget = garden.plant.transition("forget")
        assert await garden.plants.sweep(forget, garden.call("warden")) == 1
        found = await garden.plants.get(plant.plant_id)
        assert found is not None and found.note == f"Ann forgot it (turn {turn})"
        waits = (found.thirsty_at - found.changed_at).total_seconds()
        assert (found.state, waits > 0) == ((words.DRY, True) if turn == 1 else (words.WITHERED, False))
        garden.world.ahead_ms += 1_000
    assert (await garden.plants.move_to(plant.plant_id, words.DRY, garden.call("visitor"))).applied
    found = await garden.plants.get(plant.plant_id)
    assert found is not None and (found.forgotten, found.gardener, found.turn) == (0, None, 2)


async def test_edges_by_name_and_with_conditions(garden: Garden) -> None:
    plant = await garden.sow(description=json.dumps("leaf " * 20_000))
    taking, shed, words = garden.plants.taking(), garden.call("shed"), garden.words
    [taken] = (await taking.exchange("Ann", [], 1, shed)).taken
    assert json.loads(taken.description) == "leaf " * 20_000
    assert garden.bucket.keys("green/leaves/") == [f"green/leaves/{plant.plant_id}/description.json"]
    held = Held("Ann", 1)
    measure = garden.plant.shifts["measure"]
    assert await garden.plants.shift(plant.plant_id, measure, shed, held, height="3.50")
    down = Settling(plant.plant_id, held, words.DRY, {}, False, "put_down")
    assert await taking.settle_all([down], shed) == [words.DRY]
    found = await garden.plants.get(plant.plant_id)
    assert found is not None and (found.note, found.forgotten, found.height) == ("evening", 0, "3.50")
    [taken] = (await taking.exchange("Ann", [], 1, shed)).taken
    assert taken.height is None
    assert (
        await taking.settle(plant.plant_id, words.BLOOMING, Held("Ann", 2), shed, note="wet")
        == words.BLOOMING
    )
    client = garden.call("client")
    assert (await garden.plants.move_to(plant.plant_id, words.STORED, client)).applied
    assert not (await garden.plants.move_to(plant.plant_id, words.WITHERED, client)).applied
    assert (await garden.plants.move_to(plant.plant_id, words.BLOOMING, client)).applied
    second = await garden.sow()
    [taken] = (await taking.exchange("Ann", [], 1, shed)).taken
    assert (await garden.plants.move(second.plant_id, words.TENDED, words.WITHERED, client)).applied
    found = await garden.plants.get(second.plant_id)
    assert found is not None and (found.note, found.gardener) == ("unwanted", "Ann")


async def test_a_gardener_has_neither_parts_nor_leases(garden: Garden) -> None:
    ann, shed = garden.records.GardenerRecord(gardener_id="Ann"), garden.call("shed")
    assert (await garden.gardeners.create_or_find(ann, shed))[1]
    wave = garden.gardener.shifts["wave"]
    assert await garden.gardeners.shift("Ann", wave, shed, plants=("p", "q"), watered=2)
    assert [each.plants for each in await garden.gardeners.find()] == [("p", "q")]
    await garden.gardeners.open(garden.log, ["shed"])
    assert (await garden.gardeners.delete("Ann", garden.words.AT_WORK, shed)).applied
    assert await garden.gardeners.get("Ann") is None
