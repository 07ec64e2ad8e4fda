"""What is made for entities in a bucket: tables for the engine, records, a page and a reference."""

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
from runtime.model.kept_in_s3 import KeptInS3
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import Deployment
from runtime.stores.s3.indexes.indexes import shown_in_hints
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
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
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


def told() -> Any:
    """What the page is told, as it reads it."""
    text = texts(bucket_page.emit, spec(NURSERY))["generated/nursery/page/spec.js"]
    head, _, rest = text.partition("export const spec = ")
    assert head.startswith("// Generated from tests/specs/nursery")
    return json.loads(rest.removesuffix(";\n"))


def edges(of: Any) -> dict[str, Any]:
    return {each["name"]: each for each in of["edges"]}


def plant(made: dict[str, Any]) -> Lifecycle:
    found: Lifecycle = made["lifecycle"].PLANT
    return found


def kept(made: dict[str, Any]) -> KeptInS3:
    found = plant(made).in_s3
    assert found is not None
    return found


def test_the_engine_is_told_where_a_plant_is(made: dict[str, Any]) -> None:
    """Variables by name, keys as patterns, and the limit as a number of bytes."""
    found = kept(made)
    assert (found.endpoint, found.bucket, found.region, found.prefix) == (
        "NURSERY_STORE",
        "NURSERY_BUCKET",
        "NURSERY_REGION",
        "NURSERY_FOLDER",
    )
    assert found.object == "plants/{corner}/{plant_id}.json"
    assert found.shard is not None and (found.shard.field, found.shard.digits) == ("corner", 2)
    assert found.schema is not None and (found.schema.field, found.schema.value) == ("layout", 3)
    assert (found.revision, found.keyed_by, found.unversioned, found.skew) == (
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


def test_the_time_in_the_key_of_a_hint_is_told(made: dict[str, Any]) -> None:
    """It orders the hints, and what is due by it is looked for there."""
    assert {name: row.at for name, row in kept(made).indexes.items()} == {
        "dry": "thirsty_at",
        "tended": "tended_until",
    }


def test_a_shape_knows_what_json_has_to_look_like(made: dict[str, Any]) -> None:
    """Types as the spec has them, words of enums, and the messages that a record holds."""
    found = kept(made)
    assert found.shape.made is made["records"].PlantRecord
    assert found.shape.types["care"] == "Care" and found.shape.types["prices"] == "map<string, double>"
    assert found.shape.types["state"] == "enum"
    assert sorted(found.shape.words["state"].values())[:2] == ["Blooming", "Dry"]
    assert "label" in found.shape.optional and "species" not in found.shape.optional
    assert set(found.messages) == {"Care", "Shelf"}
    assert found.messages["Shelf"].made is made["records"].Shelf
    assert found.messages["Shelf"].optional == {"version"}


def test_records_hold_messages_lists_and_maps(made: dict[str, Any]) -> None:
    """Each has a default, so that a record needs nothing but its key."""
    record = made["records"].PlantRecord(plant_id="p")
    assert record.care == made["records"].Care() and record.description_at is None
    assert (record.tags, record.prices, record.description) == ((), {}, "")
    hints = type(record).__annotations__
    assert (hints["tags"], hints["prices"]) == ("tuple[str, ...]", "Mapping[str, float]")
    assert hints["description_at"] == "Shelf | None"


def test_edges_that_lead_where_another_leads_are_found_by_name(made: dict[str, Any]) -> None:
    """They stand beside the others, which are found by their ends."""
    found = plant(made)
    assert [edge.name for edge in found.by_name] == ["put_down", "pull_up"]
    assert found.transition("put_down").by_name
    assert {edge.name for edge in found.edges.values()}.isdisjoint({"put_down", "pull_up"})
    forget = found.transition("forget")
    assert forget.waits is not None
    assert (forget.waits.base, forget.waits.times, forget.waits.jitter) == (
        "care.first_ms",
        "care.factor",
        "care.mood",
    )
    assert list(found.transition("unpack_bloom").where) == ["stored_from"]
    assert found.lease is not None and (found.lease.token, found.lease.only) == ("grip", "species")


def test_a_page_is_told_all_that_an_edge_does() -> None:
    """What a lease clears when it ends is among it, and texts that stand in for what nobody says."""
    found = edges(told()["plant"])
    assert found["sow_again"] == {
        "name": "sow_again",
        "doc": "Somebody has hope.",
        "from": ["WITHERED"],
        "to": "DRY",
        "by": ["client", "visitor"],
        "where": None,
        "stamps": ["thirsty_at", "changed_at"],
        "sets": {"forgotten": 0},
        "clears": ["gardener"],
        "counts": [],
    }
    assert found["pull_up"]["clears"] == ["tended_until", "grip"]
    assert found["pull_up"]["sets"] == {"note": "unwanted"}
    assert found["put_down"]["clears"] == ["tended_until", "grip", "gardener"]
    assert found["unpack_bloom"]["where"] == {"stored_from": "Blooming"}
    assert found["store_bloom"]["sets"] == {"stored_from": "Blooming"}
    assert found["forget"]["counts"] == ["forgotten"]


def test_a_page_is_told_where_everything_is() -> None:
    """Keys, hints, words of states, and the times that it needs."""
    found = told()
    assert (found["system"], found["principal"]) == ("nursery", "visitor")
    shown = found["plant"]
    assert (shown["created"], shown["updated"]) == ("sown_at", "changed_at")
    assert shown["states"][0] == {
        "name": "DRY",
        "word": "Dry",
        "doc": "It waits for water.",
        "initial": True,
        "final": False,
    }
    assert shown["indexes"]["tended"] == {
        "key": "tended/{corner}/{tended_until}/{plant_id}",
        "time": "tended_until",
        "in": ["TENDED"],
    }
    assert shown["retires"] == {"tag": "plant", "value": "stored", "in": ["STORED"], "from": "stored_from"}
    assert shown["fields"][0] == {"name": "plant_id", "type": "uuid", "optional": False, "doc": ""}
    watched = found["gardener"]
    assert (watched["heartbeat"], watched["stale_after_seconds"]) == ("seen_at", 20)
    assert watched["lease"] is None and watched["shard"] is None and watched["edges"] == []


def test_a_page_is_told_what_the_fields_are_for(made: dict[str, Any]) -> None:
    """So it knows by no name what a plant is, how often it was forgotten and why."""
    found = told()
    shown = found["plant"]
    assert (shown["failure"], shown["ended"], shown["lease"]["only"]) == ("note", None, "species")
    assert shown["retries"] == {"count": "forgotten", "limit": "most_forgotten"}
    assert [(each["name"], each["takes"]) for each in shown["shifts"]] == [("measure", ["height"])]
    # A hint of the page is as good as one of the engine.
    assert shown["hint"] == list(shown_in_hints(plant(made), kept(made)))
    assert found["gardener"]["hint"] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_who_has_a_page_gets_one(folder: str) -> None:
    """A picture of each life that has edges comes with it."""
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


def design(of: Spec, name: str) -> Deployment:
    module: dict[str, Any] = {}
    exec(texts(deployments.emit, of)[f"generated/{of.name}/deployments.py"], module)
    found: Deployment = module["DEPLOYMENTS"][name]
    return found


def test_nodes_on_demand_and_what_is_left_out() -> None:
    """The engine is told of both, and of a port that nobody may want."""
    nodes = design(spec(NURSERY), "yard").nodes
    assert nodes["desk"].on_demand and nodes["desk"].healthcheck is None
    assert nodes["shed"].unless == {"warden": "NO_WARDEN"}
    assert nodes["shed"].http is not None and nodes["shed"].http.optional


def test_the_reference_tells_of_the_bucket() -> None:
    """Where a plant is, what its hints are called, how long it waits, and which edges need a name."""
    text = texts(reference.emit, spec(NURSERY))["docs/reference/nursery.md"]
    assert "It is the object `plants/{corner}/{plant_id}.json` of the bucket `NURSERY_BUCKET`" in text
    assert "| `dry` | `dry/{corner}/{thirsty_at}/{plant_id}` | `DRY` |" in text
    assert "`care.first_ms` milliseconds, `care.factor` times as long" in text
    assert "| `STORED` | `BLOOMING` | client, visitor | `stored_from` = `BLOOMING` |" in text
    assert "In `STORED` it has the tag `plant=stored`" in text
    assert "`127.0.0.1` where `SHED_PORT` is set" in text


def test_what_is_absent_is_filled_in() -> None:
    """Each type of field has its own way to say so, and a message is made of what stands in for its parts."""
    text = texts(requests.emit, spec(NURSERY))["generated/nursery/requests.py"]
    settle = text.partition("def settle_sow_plant_request")[2].partition("\ndef ")[0]
    assert "message.care.SetInParent()\n    settle_wished_care(message.care)" in settle
    for name, value in (("description", "'null'"), ("watered", "True"), ("bed", "SUNNY")):
        assert f'if not message.HasField("{name}"):\n        message.{name} = {value}' in settle
    assert "for index, tags_item in enumerate(message.tags):" in text
