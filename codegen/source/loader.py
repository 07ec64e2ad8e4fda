"""Loader: a folder of YAML files -> a Spec, or all complaints about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from codegen.diagnostics import Diagnostic, Place, SpecError, find_closest, suggest
from codegen.language import FILES, OPTIONAL
from codegen.rules import check
from codegen.source.schema_validation import find_duplicates, find_moved_keys, rename_old_keys, validate
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Source, parse


def load(folder: Path, base: Path | None = None) -> Spec:
    """Load and check a spec; raises SpecError with all complaints."""
    spec, complaints = examine(folder, base)
    if spec is None or any(each.severity == "error" for each in complaints):
        raise SpecError(complaints)
    return spec


def examine(folder: Path, base: Path | None = None) -> tuple[Spec | None, list[Diagnostic]]:
    """Load the valid parts of a spec and list all complaints about it."""
    display_folder = folder.relative_to(base) if base else Path(folder.name)
    sources, complaints = _read_files(folder, display_folder.as_posix())
    models: dict[str, BaseModel] = {}
    dropped: set[str] = set()
    for name, source in sources.items():
        complaints += find_duplicates(source)
        complaints += rename_old_keys(name, source)
    moved = list(find_moved_keys(sources))
    for name, source in sources.items():
        loaded, found = validate(FILES[name], source, dropped)
        complaints += found
        if loaded is not None:
            models[name] = loaded
    models |= {name: FILES[name]() for name in OPTIONAL - sources.keys()}
    if len(models) < len(FILES):
        return None, _merge_alias_repeats(sources, complaints)
    parts: dict[str, Any] = {**models}
    spec = Spec(
        display_folder.as_posix(), sources, compute_digest(models), **parts, dropped=frozenset(dropped)
    ).at_home()
    # What has yet to be moved to another file is nowhere that a rule could point to.
    found = moved or check(spec, complaints)
    return spec, _merge_alias_repeats(sources, complaints + found)


def _merge_alias_repeats(sources: dict[str, Source], complaints: list[Diagnostic]) -> list[Diagnostic]:
    """Merge the complaints about a value that aliases repeat: it is wrong in one place of the text."""
    aliased = {source.name: source.aliased for source in sources.values()}
    groups: dict[object, list[Diagnostic]] = {}
    for each in dict.fromkeys(complaints):
        place = each.place
        is_repeated = (place.line, place.column) in aliased.get(place.file, ())
        groups.setdefault((place, each.code) if is_repeated else each, []).append(each)
    return [_merge(found) for found in groups.values()]


def _merge(found: list[Diagnostic]) -> Diagnostic:
    first, *others = found
    if not others:
        return first
    also = f"Aliases repeat it in {len(others)} other place{'s' if len(others) > 1 else ''}."
    return replace(first, hint=f"{first.hint} {also}".strip())


def compute_digest(models: dict[str, BaseModel]) -> str:
    """Compute a hash of the meaning of a spec: neither spelling nor a new keyword with its default counts."""
    data = {
        name: model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for name, model in models.items()
    }
    data = {name: values for name, values in data.items() if values or name not in OPTIONAL}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _read_files(folder: Path, display_folder: str) -> tuple[dict[str, Source], list[Diagnostic]]:
    """Read the files that are YAML, and report the others."""
    sources: dict[str, Source] = {}
    present = {path.stem for path in folder.glob("*.yaml")}
    complaints = list(_find_wrong_files(present, display_folder))
    for name in FILES:
        if name not in present:
            continue
        place = Place(f"{display_folder}/{name}.yaml", 1, 1)
        try:
            text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            message = f"The file is not UTF-8: {error.reason} at byte {error.start}."
            complaints.append(Diagnostic(place, "E001", message, "Save it as UTF-8."))
            continue
        except OSError as error:
            complaints.append(Diagnostic(place, "E003", f"The file cannot be read: {error.strerror}."))
            continue
        source, found = parse(place.file, text)
        complaints += found
        if source.data is not None or not found:
            sources[name] = source
    return sources, complaints


def _find_wrong_files(present: set[str], display_folder: str) -> Iterator[Diagnostic]:
    missing = [name for name in FILES if name not in present]
    needed = [name for name in missing if name not in OPTIONAL]
    for stray in sorted(present - set(FILES)):
        place, message = Place(f"{display_folder}/{stray}.yaml", 1, 1), f"No spec has a file {stray}.yaml."
        yield Diagnostic(place, "E003", message, suggest(stray, missing or FILES))
        # A file with the wrong name is missing under its right one; that is no complaint of its own.
        needed = [name for name in needed if name != find_closest(stray, missing)]
    for name in needed:
        hint = f"Create it, with '# yaml-language-server: $schema=../schema/{name}.schema.json' on top."
        place = Place(f"{display_folder}/{name}.yaml", 1, 1)
        yield Diagnostic(place, "E003", f"The file {name}.yaml is missing.", hint)
