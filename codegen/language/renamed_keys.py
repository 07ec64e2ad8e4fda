"""Keys that had another name: errors in an old spec say the new one, old accepted forms are read by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Path = tuple[str, ...]

_WRITES = {"takes": "from_request", "clears": "clear"}
_EDGE = {
    **_WRITES,
    "copies": "copy",
    "grows": "multiply",
    "counts": "increment",
    "waits": "backoff",
    "gives_up": "dead_letter",
}
RENAMED: dict[str, dict[str, dict[str, str]]] = {
    "lifecycle": {
        "entities.*": {"shown": "public_status", "shifts": "updates"},
        "entities.*.lease": {"first": "claim_order"},
        "entities.*.create": {"copies": "copy", "fills": "defaults", "refuses": "ceiling"},
        "entities.*.create.ceiling": {"most": "max"},
        "entities.*.delete.due": {"gives": "values"},
        "entities.*.transitions.*": _EDGE,
        "entities.*.transitions.*.multiply.*": {"most": "max"},
        "entities.*.transitions.*.dead_letter": {"with": "transition"},
        "entities.*.transitions.*.due": {"gives": "values"},
        "entities.*.transitions.*.also_due": {"gives": "values"},
        "entities.*.updates.*": _WRITES,
        "entities.*.updates.*.due": {"gives": "values"},
    }
}
"""By file and place: old and new name of a key. Places have new names, outer ones before inner ones."""


JOINED: dict[str, dict[str, tuple[str, str]]] = {
    "lifecycle": {"entities.*.transitions.*": ("also_due", "due")},
}
"""By file and place: a key that is gone, and the one that is a list of both instead."""


def iter_joined(file: str, data: Any) -> Iterator[tuple[Path, str]]:
    """Iterate over the keys of a file that are gone: path and the key that is a list instead."""
    for place, (old, new) in JOINED.get(file, {}).items():
        for path, part in [*find_parts(data, tuple(place.split(".")))]:
            if old in part:
                yield (*path, old), new


def iter_renamed(file: str, data: Any) -> Iterator[tuple[Path, str]]:
    """Iterate over the old keys of a file: path and new name. Rename each before you ask for the next one."""
    for place, names in RENAMED.get(file, {}).items():
        for path, part in [*find_parts(data, tuple(place.split(".")))]:
            for old, new in names.items():
                if old in part and new not in part:
                    yield (*path, old), new


def rename_keys(file: str, data: Any) -> list[str]:
    """Give all old keys of a file their new names; return which, as `old -> new`."""
    found: dict[str, None] = {}
    for path, new in iter_renamed(file, data):
        rename_key(data, path, new)
        found[f"{path[-1]} -> {new}"] = None
    for path, new in iter_joined(file, data):
        _join_keys(data, path, new)
        found[f"{path[-1]} -> a list of {new}"] = None
    return [*found]


def rename_key(data: Any, path: Path, new: str) -> None:
    """Rename one key of a tree of mappings; its place among its neighbours stays."""
    *around, old = path
    for step in around:
        data = data[step]
    items = [(new if key == old else key, value) for key, value in data.items()]
    data.clear()
    data.update(items)


def _join_keys(data: Any, path: Path, new: str) -> None:
    """Make a list of the values of a key that is gone and of the one before it."""
    *around, old = path
    for step in around:
        data = data[step]
    value = data.pop(old)
    data[new] = [data[new], value] if new in data else value


def find_parts(data: Any, place: Path, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Find the mappings at a place, in which `*` stands for any name."""
    if not isinstance(data, dict):
        return
    if not place:
        yield path, data
        return
    for name in data if place[0] == "*" else (place[0],):
        if name in data:
            yield from find_parts(data[name], place[1:], (*path, name))


_SOURCES = {
    "entities.*.lease": ("seconds",),
    "entities.*.transitions.*.backoff": ("base", "max", "times", "jitter"),
    "entities.*.transitions.*.dead_letter": ("limit",),
}


def iter_bare(file: str, data: Any) -> Iterator[tuple[Path, dict[str, str]]]:
    """Iterate over the sources of a file that are a name alone: path and what to write instead."""
    for place, keys in _SOURCES.items() if file == "lifecycle" else ():
        for path, part in find_parts(data, tuple(place.split("."))):
            for key in keys:
                if isinstance(name := part.get(key), str):
                    yield (*path, key), {"env" if name.isupper() else "field": name}


def set_value(data: Any, path: Path, value: Any) -> None:
    """Replace one value of a tree of mappings."""
    *around, last = path
    for step in around:
        data = data[step]
    data[last] = value
