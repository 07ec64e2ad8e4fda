"""The encoders of new entities: each kind of value as Redis has it, and arguments of the shorter scripts."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import orjson
import pytest

from codegen.emit.python.records import select_redis_entities
from codegen.emit.redis import creation_encoder
from codegen.source.spec import Spec
from tests.support.codegen.specs import FOLDERS, change_spec, spec, texts

RENTAL = "tests/specs/rental"
SMALL = 1
VARIABLES = {"SMALL_DROPS": 3, "SMALL_SECONDS": 60, "LARGE_DROPS": 5, "LARGE_SECONDS": 90}


def make_spec() -> Spec:
    """The rental, whose bikes have values of further kinds."""

    def change(data: Any) -> None:
        data["yard"]["messages"]["BikeRow"]["fields"] |= {
            "weight": {"number": 100, "type": "double"},
            "bought_at": {"number": 101, "type": "timestamp", "optional": True},
        }

    spec_ = change_spec(spec(RENTAL), "types", change)
    # Properties that were computed from the types before are computed anew.
    spec_.__dict__.pop("messages", None)
    spec_.__dict__.pop("enums", None)
    return spec_


@pytest.fixture
def encoders(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of that rental."""
    of = make_spec()
    messages, records = ModuleType("messages"), ModuleType("records")
    for enum in of.enums.values():
        vars(messages).update({name: row.number for name, row in enum.values.items()})
    vars(records).update(BikeRecord=object, VanRecord=object)
    for name, module in (("", ModuleType("rental")), (".messages", messages), (".records", records)):
        monkeypatch.setitem(sys.modules, f"generated.rental{name}", module)
    (text,) = texts(creation_encoder.emit, of).values()
    names: dict[str, Any] = {}
    exec(compile(text, "creation.py", "exec"), names)
    return SimpleNamespace(**names)


def make_bike(**values: Any) -> Any:
    """A bike with these values only."""
    fields = make_spec().messages["BikeRow"].fields
    unset = dict.fromkeys(name for name, row in fields.items() if row.optional)
    usual = {
        "bike_id": "b1",
        "size": SMALL,
        "urgency": 0,
        "tools": (),
        "drops": 0,
        "trip": 0,
        "mended": False,
    }
    return SimpleNamespace(**{**unset, **usual, "trace_id": "t1", "weight": 0.0, **values})


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_module_where_redis_keeps_entities(folder: str) -> None:
    of = spec(folder)
    emitted = texts(creation_encoder.emit, of)
    assert [*emitted] == ([f"generated/{of.name}/creation.py"] if select_redis_entities(of) else [])
    for path, text in emitted.items():
        compile(text, path, "exec")


def test_each_kind_of_value_as_redis_has_it(encoders: Any) -> None:
    """Unset values are omitted, except where they have a default or begin as another field does."""
    bought = datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    found = encoders.encode_bike(
        make_bike(tools=("rope",), mended=True, weight=9.5, bought_at=bought), VARIABLES
    )
    assert found == {
        "bike_id": "b1",
        "size": "small",
        "urgency": "small",
        "tools": '["rope"]',
        "drops": "0",
        "most_drops": "3",
        "trip": "0",
        "trip_seconds": "60",
        "first_seconds": "60",
        "mended": "true",
        "trace_id": "t1",
        "weight": "9.5",
        "bought_at": "2000000",
    }
    values = encoders.encode_bike(make_bike(most_drops=7, trip_seconds=8), {})
    assert (values["most_drops"], values["trip_seconds"], values["first_seconds"]) == ("7", "8", "8")
    assert (values["mended"], values["tools"], "bought_at" in values) == ("false", "[]", False)


def test_keys_and_arguments_of_the_script_for_a_holder(encoders: Any) -> None:
    """In the order of the script's header, under the prefix."""
    keys, arguments = encoders.ENCODERS["bike"]["create_for"](make_bike(), "v1", "p:", VARIABLES)
    assert keys[0] == "p:bikes:b1" and keys[-1] == "p:vans:v1"
    assert arguments[0] == "b1" and orjson.loads(arguments[1])["bike_id"] == "b1"
    assert {"any", "v1", "t1"} <= {*arguments}
    _, (key, pairs) = encoders.ENCODERS["van"]["create_one"](
        SimpleNamespace(van_id="v1", room=2, tools=(), kilometres=None), "", "", {}
    )
    assert key == "v1" and orjson.loads(pairs) == ["van_id", "v1", "room", "2", "tools", "[]"]


@pytest.mark.parametrize("special", ["plate", "rests_until", "van", "complaint"])
def test_a_value_that_only_the_script_for_many_supports(encoders: Any, special: str) -> None:
    """One that is unique, delays, or is stored by itself."""
    assert encoders.ENCODERS["bike"]["create_one"](make_bike(**{special: "x"}), "", "", VARIABLES) is None
