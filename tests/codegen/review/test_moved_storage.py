"""Storage that lifecycle.yaml had in `kept_in`: an old form means what storage.yaml and `engine` say now."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from codegen.language.moved_storage import iter_moved, move_storage
from codegen.review.compare import compare
from codegen.review.form import decode_form
from tests.support.codegen.review_forms import base, spec


def make_old(data: Any) -> Any:
    """The same data as it was when each entity said where it was kept."""
    old = deepcopy(data)
    for store, section in old.pop("storage").items():
        names = section.pop("entities")
        for name, row in names.items():
            entity = old["lifecycle"]["entities"][name]
            kept = {"store": store, **section, **row}
            if store == "redis":
                _name_keys(entity, kept)
            elif store == "s3":
                del entity["unique"]
            else:
                kept |= {word: entity.pop(word) for word in ("unique", "unique_for", "indexes", "expires")}
                for index in kept["indexes"].values():
                    index["key"] = "any"
            entity["kept_in"] = kept
    for deployment in old["deployments"].values():
        deployment["servers"] = {"postgres": "COATS_URL"}
    return old


def _name_keys(entity: Any, kept: Any) -> None:
    """Put keys where they were: beside the states of an index, and into the lease."""
    seconds, indexes, keys = entity.pop("unique_for"), entity.pop("indexes"), kept["indexes"]
    kept["unique"] = {field: {"key": key, "seconds": seconds[field]} for field, key in kept["unique"].items()}
    kept["expires"] = entity.pop("expires")
    entity["lease"]["paused"] = kept.pop("paused")
    kept["wakes"] = kept.pop("wake_up")
    for name, index in indexes.items():
        index.pop("by", None)
        named = keys[name]
        index["key"] = named["key"]
        if needs := index.pop("needs", None):
            index["parts"] = {"by": needs, "key": named["parts"], "known": named["known"]}
    kept["indexes"] = indexes


def test_an_old_form_means_the_same() -> None:
    """Every word of `kept_in` on each engine has its place, and no difference comes of it."""
    old = make_old(base())
    assert {key for key, _ in _list_moved(old)} == {"kept_in", "paused", "servers"}
    assert move_storage(old) == {
        "lifecycle": ["kept_in -> storage.yaml"],
        "deployments": ["servers -> engine"],
    }
    assert compare(decode_form(old, "spec/kiosk"), spec(base())) == []
    assert [*_list_moved(old)] == []


def _list_moved(data: Any) -> list[tuple[str, str]]:
    files = ("lifecycle", "deployments")
    return [(path[-1], hint) for file in files for path, _, hint in iter_moved(file, data[file])]


def test_a_deployment_without_an_engine_has_that_of_the_entities() -> None:
    data: Any = {
        "lifecycle": {"entities": {"job": {"kept_in": {"store": "sqlite"}}}},
        "deployments": {"own": {}, "other": {"engine": "memory"}},
    }
    assert move_storage(data)["deployments"] == ["the engine of kept_in -> engine"]
    assert {name: row["engine"] for name, row in data["deployments"].items()} == {
        "own": "sqlite",
        "other": "memory",
    }
    assert data["storage"] == {"sqlite": {"entities": {"job": {}}}}


def test_nothing_is_moved_where_nothing_was_kept() -> None:
    data: Any = {"lifecycle": {"entities": {"job": {"key": "job_id"}}}, "deployments": {"own": {}}}
    before = deepcopy(data)
    assert move_storage(data) == {}
    assert data == before
