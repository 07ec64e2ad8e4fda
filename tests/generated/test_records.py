"""Generated records and settings are values: compared, hashed, copied and replaced, never changed."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from codegen.emit.python import records
from generated.objectqueue.records import DataRef, RetryPolicy, TaskRecord, WorkerRecord
from generated.queuey.settings import VARIABLES, StoreSettings
from tests.support.codegen.specs import spec, texts

TASK = TaskRecord(id="a", rev=2, input_ref=DataRef(key="k", version="v"))


def test_fields_are_given_by_name_alone() -> None:
    """A field that is not given has its default; only the key has none."""
    assert (TASK.rev, TASK.input, TASK.output, TASK.retry_policy) == (2, "", None, RetryPolicy())
    kind: Any = TaskRecord
    with pytest.raises(TypeError, match="positional"):
        kind("a")
    with pytest.raises(TypeError, match="'id'"):
        kind(rev=1)
    with pytest.raises(TypeError, match="'size'"):
        kind(id="a", size=1)


@pytest.mark.parametrize("name", ["rev", "size"])
def test_nothing_is_assigned_or_deleted(name: str) -> None:
    """A record stays as it was made, and has no room for more."""
    with pytest.raises(AttributeError):
        setattr(TASK, name, 3)
    with pytest.raises(AttributeError):
        delattr(TASK, name)
    assert TASK.rev == 2 and not hasattr(TASK, "__dict__")


def test_records_are_equal_and_hashed_by_their_values() -> None:
    """One of another class is never equal, whatever its values are."""
    same = TaskRecord(id="a", rev=2, input_ref=DataRef(key="k", version="v"))
    assert same == TASK and hash(same) == hash(TASK) and len({same, TASK}) == 1
    assert replace(TASK, input_ref=DataRef(key="k")) != TASK
    other: object = WorkerRecord(worker_id="a")
    assert TaskRecord(id="a") != other


def test_a_record_is_copied() -> None:
    """As it is, deeply, through bytes, and with other values; what no field takes is refused."""
    for same in (copy.copy(TASK), copy.deepcopy(TASK), pickle.loads(pickle.dumps(TASK))):
        assert same == TASK and type(same) is TaskRecord
    changed = replace(TASK, rev=3)
    assert (changed.rev, TASK.rev, changed.input_ref) == (3, 2, TASK.input_ref)
    assert asdict(DataRef(key="k")) == {"key": "k", "version": None}
    with pytest.raises(TypeError, match="size"):
        replace(TASK, size=1)


def test_a_record_shows_its_values() -> None:
    """Its name and every field, in the order of the spec."""
    assert repr(TASK.input_ref) == "DataRef(key='k', version='v')"
    assert repr(TASK).startswith("TaskRecord(id='a', schema_version=0, rev=2, ")


def test_a_record_with_a_map_is_not_hashed() -> None:
    """A map that is not given is made anew for every record."""
    known: dict[str, Any] = {"__name__": "made"}
    exec(texts(records.emit, spec("tests/specs/nursery"))["generated/nursery/records.py"], known)
    first, second = known["PlantRecord"](plant_id="p"), known["PlantRecord"](plant_id="p")
    assert first == second and first.prices is not second.prices
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)


def test_settings_are_as_frozen() -> None:
    """They are read once, and nothing assigns to them later."""
    values = {name: variable.default for name, variable in VARIABLES.items()}
    settings = StoreSettings.of(values)
    assert settings == StoreSettings.of(values) != replace(settings, host="elsewhere")
    with pytest.raises(AttributeError):
        settings.host = "elsewhere"  # type: ignore[misc]
