"""Old keys for where entities are kept, which belong to storage.yaml and deployments.yaml now."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from typing import Any

from codegen.language.renamed_keys import Path, find_parts

Files = MutableMapping[str, Any]
"""The data of the files of a spec by their names."""

_WORDS = ("unique", "unique_for", "expires")
_OF_ENGINE = frozenset({"url", "path", "prefix", "endpoint", "bucket", "region", "metrics"})
_ORDER = ("s3", "redis", "postgres", "sqlite")


def iter_moved(file: str, data: Any) -> Iterator[tuple[Path, str, str]]:
    """Iterate over the keys of a file that are gone: path, why, and where to write it now."""
    if file == "lifecycle":
        for path, entity in find_parts(data, ("entities", "*")):
            yield from _iter_of_entity(path, entity)
    if file == "deployments":
        for path, deployment in find_parts(data, ("*",)):
            if "servers" in deployment:
                hint = "Say 'engine' in its place, as 'engine: postgres'."
                yield (*path, "servers"), "the servers follow from the engine", hint


def _iter_of_entity(path: Path, entity: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    store, name = _get_store(entity), path[-1]
    if "kept_in" in entity:
        hint = (
            f"Move names to storage.yaml, as '{store}: {{entities: {{{name}: …}}}}', the engine to "
            f"deployments.yaml, as 'engine: {store}', and 'unique', 'unique_for', 'indexes' and 'expires' to "
            "the entity itself."
        )
        yield (*path, "kept_in"), "where an entity is kept is up to the deployment", hint
    if "paused" in (entity.get("lease") or ()):
        hint = f"Move it to storage.yaml, as 'redis: {{entities: {{{name}: {{paused: …}}}}}}'."
        yield (*path, "lease", "paused"), "names of keys are in storage.yaml", hint


def move_storage(files: Files) -> dict[str, list[str]]:
    """Move what old keys say to where it belongs; return what was moved, by file."""
    moved: dict[str, list[str]] = {}
    entities = (files.get("lifecycle") or {}).get("entities") or {}
    kept = {name: row for name, row in entities.items() if isinstance(row.get("kept_in"), dict)}
    home = next((each for each in _ORDER if each in map(_get_store, kept.values())), None)
    for name, entity in kept.items():
        _move_entity(files, name, entity)
        moved["lifecycle"] = ["kept_in -> storage.yaml"]
    for entity in entities.values():
        if (entity.get("lease") or {}).pop("paused", None):
            # Nothing but the key is lost; whose name it should have is in the complaint.
            moved.setdefault("lifecycle", []).append("paused -> storage.yaml")
    for deployment in (files.get("deployments") or {}).values():
        has_servers = deployment.pop("servers", None) is not None
        if home is not None and "engine" not in deployment:
            deployment["engine"] = home
            moved["deployments"] = ["the engine of kept_in -> engine"]
        elif has_servers:
            moved["deployments"] = ["servers -> engine"]
    return moved


def _get_store(entity: Any) -> str:
    kept = entity.get("kept_in")
    store = kept.get("store") if isinstance(kept, dict) else None
    return store if isinstance(store, str) and store in _ORDER else "postgres"


def _move_entity(files: Files, name: str, entity: dict[str, Any]) -> None:
    store, kept = _get_store(entity), entity.pop("kept_in")
    section = files.setdefault("storage", {}).setdefault(store, {})
    kept.pop("store", None)
    if "wakes" in kept:  # Its name before it was moved.
        kept["wake_up"] = kept.pop("wakes")
    section.update({word: kept.pop(word) for word in [*kept] if word in _OF_ENGINE})
    names: dict[str, Any] = section.setdefault("entities", {}).setdefault(name, {})
    if store == "redis":
        memory = kept.pop("unique", {})
        entity["unique_for"] = {field: row["seconds"] for field, row in memory.items()}
        names["unique"] = {field: row["key"] for field, row in memory.items()}
        if paused := (entity.get("lease") or {}).pop("paused", None):
            names["paused"] = paused
    if store != "s3":
        _move_indexes(entity, names, kept.pop("indexes", {}), is_named=store == "redis")
        entity.update({word: kept.pop(word) for word in _WORDS if word in kept})
        (entity.get("lease") or {}).pop("paused", None)
    elif "keyed_by" in kept:
        entity["unique"] = [kept["keyed_by"]]
    names.update(kept)


def _move_indexes(
    entity: dict[str, Any], names: dict[str, Any], indexes: dict[str, Any], *, is_named: bool
) -> None:
    for title, row in indexes.items():
        key, parts = row.pop("key"), row.pop("parts", None)
        if (by := re.search(r"\{(\w+)\}", key)) is not None:
            row["by"] = by[1]
        keys = {"key": key}
        if parts is not None:
            row["needs"] = parts["by"]
            keys |= {"parts": parts["key"], "known": parts["known"]}
        entity.setdefault("indexes", {})[title] = row
        if is_named:
            names.setdefault("indexes", {})[title] = keys
