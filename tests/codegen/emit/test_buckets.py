"""The output for entities in a bucket: tables for the engine, records, a page and a reference."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import pytest

from codegen.emit.console import bucket_page
from codegen.emit.docs import reference
from codegen.emit.python import deployments, lifecycle, records, requests
from codegen.source.spec import Spec
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import Deployment
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.indexes.index_writer import hint_fields
from tests.support.codegen.specs import FOLDERS, spec, texts

NURSERY = "tests/specs/nursery"


class Anything(types.ModuleType):
    """A module that has every name, each with a value of its own."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = len(self.__dict__)
        return self.__dict__[name]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The tables of the nursery as Python has them; enum values are any numbers."""
    of = spec(NURSERY)
    found: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, "generated.nursery", types.ModuleType("generated.nursery"))
    monkeypatch.setitem(sys.modules, "generated.nursery.messages", Anything("generated.nursery.messages"))
    for name, emit in (("records", records.emit), ("lifecycle", lifecycle.emit)):
        module = types.ModuleType(f"generated.nursery.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        text = texts(emit, of)[f"generated/nursery/{name}.py"]
        exec(compile(text, name, "exec"), module.__dict__)
        found[name] = module
    return found


def read_page_model() -> Any:
    """The model of the page, as it reads it."""
    text = texts(bucket_page.emit, spec(NURSERY))["generated/nursery/page/spec.js"]
    head, _, rest = text.partition("export const spec = ")
    assert head.startswith("// Generated from tests/specs/nursery")
    return json.loads(rest.removesuffix(";\n"))


def list_edges(of: Any) -> dict[str, Any]:
    return {each["name"]: each for each in of["edges"]}


def find_plant(tables: dict[str, Any]) -> Lifecycle:
    found: Lifecycle = tables["lifecycle"].PLANT
    return found


def find_persistence(tables: dict[str, Any]) -> KeptInS3:
    return find_plant(tables).require_storage(KeptInS3)


def test_the_engine_gets_the_keys_of_a_plant(tables: dict[str, Any]) -> None:
    """Variables by name, keys as patterns, and the limit as a number of bytes."""
    found = find_persistence(tables)
    assert (found.endpoint, found.bucket, found.region, found.prefix) == (
        "NURSERY_STORE",
        "NURSERY_BUCKET",
        "NURSERY_REGION",
        "NURSERY_FOLDER",
    )
    assert found.object == "plants/{corner}/{plant_id}.json"
    assert found.shard is not None and (found.shard.field, found.shard.digits) == ("corner", 2)
    assert found.schema is not None and (found.schema.field, found.schema.value) == ("layout", 3)
    assert (find_plant(tables).revision, found.keyed_by, found.unversioned, found.skew) == (
        "writes",
        "label",
        "NURSERY_FORGETS",
        "NURSERY_SKEW_MS",
    )
    assert found.large is not None
    assert (found.large.over, found.large.refs) == (4096, {"description": "description_at"})
    assert found.polls is not None and found.polls.mode == "LOOK_MODE"
    assert found.repairs is not None and found.repairs.by == "warden"
    assert found.retires is not None and (found.retires.tag, found.retires.days) == ("plant", "KEPT_DAYS")


def test_the_engine_gets_the_time_in_the_key_of_a_hint(tables: dict[str, Any]) -> None:
    """It orders the hints, and due transitions are looked for there."""
    assert {name: row.at for name, row in find_persistence(tables).indexes.items()} == {
        "dry": "thirsty_at",
        "tended": "tended_until",
    }


def test_a_shape_has_the_json_types(tables: dict[str, Any]) -> None:
    """Types as in the spec, words of enums, and the messages within a record."""
    found = find_persistence(tables)
    assert found.shape.made is tables["records"].PlantRecord
    assert found.shape.types["care"] == "Care" and found.shape.types["prices"] == "map<string, double>"
    assert found.shape.types["state"] == "enum"
    assert sorted(found.shape.words["state"].values())[:2] == ["Blooming", "Dry"]
    assert "label" in found.shape.optional and "species" not in found.shape.optional
    assert set(found.messages) == {"Care", "Shelf"}
    assert found.messages["Shelf"].made is tables["records"].Shelf
    assert found.messages["Shelf"].optional == {"version"}


def test_records_have_messages_lists_and_maps(tables: dict[str, Any]) -> None:
    """Each has a default, so that a record needs nothing but its key."""
    record = tables["records"].PlantRecord(plant_id="p")
    assert record.care == tables["records"].Care() and record.description_at is None
    assert (record.tags, record.prices, record.description) == ((), {}, "")
    hints = type(record).__annotations__
    assert (hints["tags"], hints["prices"]) == ("tuple[str, ...]", "Mapping[str, float]")
    assert hints["description_at"] == "Shelf | None"


def test_edges_with_the_same_ends_are_found_by_name(tables: dict[str, Any]) -> None:
    """They are beside the others, which are found by their ends."""
    found = find_plant(tables)
    assert [edge.name for edge in found.by_name] == ["put_down", "pull_up"]
    assert found.transition("put_down").by_name
    assert {edge.name for edge in found.edges.values()}.isdisjoint({"put_down", "pull_up"})
    forget = found.transition("forget")
    assert forget.backoff is not None
    assert (forget.backoff.base, forget.backoff.times, forget.backoff.jitter) == (
        "care.first_ms",
        "care.factor",
        "care.mood",
    )
    assert list(found.transition("unpack_bloom").where) == ["stored_from"]
    assert found.lease is not None and (found.lease.token, found.lease.only) == ("grip", "species")


def test_the_page_gets_all_effects_of_an_edge() -> None:
    """The fields that the end of a lease clears are among them, and default texts."""
    found = list_edges(read_page_model()["plant"])
    assert found["sow_again"] == {
        "name": "sow_again",
        "doc": "Somebody has hope.",
        "from": ["WITHERED"],
        "to": "DRY",
        "by": ["client", "visitor"],
        "where": None,
        "stamps": ["thirsty_at", "changed_at"],
        "sets": {"forgotten": 0},
        "clear": ["gardener"],
        "increment": [],
    }
    assert found["pull_up"]["clear"] == ["tended_until", "grip"]
    assert found["pull_up"]["sets"] == {"note": "unwanted"}
    assert found["put_down"]["clear"] == ["tended_until", "grip", "gardener"]
    assert found["unpack_bloom"]["where"] == {"stored_from": "Blooming"}
    assert found["store_bloom"]["sets"] == {"stored_from": "Blooming"}
    assert found["forget"]["increment"] == ["forgotten"]


def test_the_page_gets_keys_hints_and_words() -> None:
    """Keys, hints, words of states, and the times that it needs."""
    found = read_page_model()
    assert (found["system"], found["principal"]) == ("nursery", "visitor")
    purposes = found["plant"]
    assert (purposes["created"], purposes["updated"]) == ("sown_at", "changed_at")
    assert purposes["states"][0] == {
        "name": "DRY",
        "word": "Dry",
        "doc": "It waits for water.",
        "initial": True,
        "final": False,
    }
    assert purposes["indexes"]["tended"] == {
        "key": "tended/{corner}/{tended_until}/{plant_id}",
        "time": "tended_until",
        "in": ["TENDED"],
    }
    assert purposes["retires"] == {"tag": "plant", "value": "stored", "in": ["STORED"], "from": "stored_from"}
    assert purposes["fields"][0] == {"name": "plant_id", "type": "uuid", "optional": False, "doc": ""}
    watched = found["gardener"]
    assert (watched["heartbeat"], watched["stale_after_seconds"]) == ("seen_at", 20)
    assert watched["lease"] is None and watched["shard"] is None and watched["edges"] == []


def test_the_page_gets_the_purpose_of_each_field(tables: dict[str, Any]) -> None:
    """So that its code has no field names of a plant."""
    found = read_page_model()
    purposes = found["plant"]
    assert (purposes["failure"], purposes["ended"], purposes["lease"]["only"]) == ("note", None, "species")
    assert purposes["retries"] == {"count": "forgotten", "limit": "most_forgotten"}
    assert [(each["name"], each["from_request"]) for each in purposes["updates"]] == [("measure", ["height"])]
    # A hint of the page is as good as one of the engine.
    assert purposes["hint"] == list(hint_fields(find_plant(tables)))
    assert found["gardener"]["hint"] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_systems_with_a_page_get_one(folder: str) -> None:
    """A picture of each lifecycle with edges comes with it."""
    of = spec(folder)
    found = texts(bucket_page.emit, of)
    if of.system.page is None:
        assert found == {}
        return
    pictures = {name for name, row in of.lifecycle.entities.items() if row.in_s3 and row.transitions}
    assert {path.rpartition("/")[2] for path in found} == {
        "spec.js",
        *(f"lifecycle-{name}.svg" for name in pictures),
    }


def find_deployment(of: Spec, name: str) -> Deployment:
    module: dict[str, Any] = {}
    exec(texts(deployments.emit, of)[f"generated/{of.name}/deployments.py"], module)
    found: Deployment = module["DEPLOYMENTS"][name]
    return found


def test_nodes_on_demand_and_optional_ports() -> None:
    """The engine gets both, and a port that may be unset."""
    nodes = find_deployment(spec(NURSERY), "yard").nodes
    assert nodes["desk"].on_demand and nodes["desk"].healthcheck is None
    assert nodes["shed"].unless == {"warden": "NO_WARDEN"}
    assert nodes["shed"].http is not None and nodes["shed"].http.optional


def test_the_reference_has_the_bucket() -> None:
    """Key of a plant, names of its hints, its waits, and the edges that need a name."""
    text = texts(reference.emit, spec(NURSERY))["docs/reference/nursery.md"]
    assert "It is the object `plants/{corner}/{plant_id}.json` of the bucket `NURSERY_BUCKET`" in text
    assert "| `dry` | `dry/{corner}/{thirsty_at}/{plant_id}` | `DRY` |" in text
    assert "`care.first_ms` milliseconds, `care.factor` times as long" in text
    assert "| `STORED` | `BLOOMING` | client, visitor | `stored_from` = `BLOOMING` |" in text
    assert "In `STORED` it has the tag `plant=stored`" in text
    assert "`127.0.0.1` where `SHED_PORT` is set" in text


def test_absent_values_have_defaults() -> None:
    """Each type of field has its own default, and a message consists of the defaults of its parts."""
    text = texts(requests.emit, spec(NURSERY))["generated/nursery/requests.py"]
    settle = text.partition("def settle_sow_plant_request")[2].partition("\ndef ")[0]
    assert "message.care.SetInParent()\n    settle_wished_care(message.care)" in settle
    for name, value in (("description", "'null'"), ("watered", "True"), ("bed", "SUNNY")):
        assert f'if not message.HasField("{name}"):\n        message.{name} = {value}' in settle
    assert "for index, tags_item in enumerate(message.tags):" in text
