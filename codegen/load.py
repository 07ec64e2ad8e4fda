"""A folder of YAML files -> a Spec, or everything that is wrong with it at once."""

from __future__ import annotations

import hashlib
import json
import types as python_types
import typing
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, RootModel, ValidationError

from codegen.diagnostics import Diagnostic, Place, SpecError, suggest
from codegen.language import FILES
from codegen.rules import check
from codegen.source import Path as KeyPath
from codegen.source import Source, parse
from codegen.spec import Spec


def load(folder: Path, base: Path | None = None) -> Spec:
    """Loads and checks a spec; raises SpecError with all complaints."""
    spec, complaints = examine(folder, base)
    if spec is None or any(each.severity == "error" for each in complaints):
        raise SpecError(complaints)
    return spec


def examine(folder: Path, base: Path | None = None) -> tuple[Spec | None, list[Diagnostic]]:
    """Loads what can be loaded and says all that is wrong with it."""
    shown = folder.relative_to(base) if base else Path(folder.name)
    sources, complaints = _read(folder, shown.as_posix())
    models: dict[str, BaseModel] = {}
    dropped: set[str] = set()
    for name, model in FILES.items():
        if (source := sources.get(name)) is not None:
            loaded, found = _fit(model, source, dropped)
            complaints += found
            if loaded is not None:
                models[name] = loaded
    if len(models) < len(FILES):
        return None, complaints
    parts: dict[str, Any] = {**models}
    spec = Spec(shown.as_posix(), sources, digest(models), **parts, dropped=frozenset(dropped))
    return spec, complaints + check(spec, whole=not complaints)


def digest(models: dict[str, BaseModel]) -> str:
    """A hash of what the spec says, not of how it is written."""
    said = {name: model.model_dump(mode="json", by_alias=True) for name, model in models.items()}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _read(folder: Path, shown: str) -> tuple[dict[str, Source], list[Diagnostic]]:
    sources: dict[str, Source] = {}
    complaints: list[Diagnostic] = []
    present = {path.stem for path in folder.glob("*.yaml")}
    for name in FILES:
        file = f"{shown}/{name}.yaml"
        if name not in present:
            hint = f"Create it, with '# yaml-language-server: $schema=../schema/{name}.schema.json' on top."
            complaints.append(Diagnostic(Place(file, 1, 1), "E003", f"The file {name}.yaml is missing.", hint))
            continue
        try:
            text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            message = f"The file is not UTF-8: {error.reason} at byte {error.start}."
            complaints.append(Diagnostic(Place(file, 1, 1), "E001", message, "Save it as UTF-8."))
            continue
        sources[name], found = parse(file, text)
        complaints += found
    for stray in sorted(present - set(FILES)):
        place = Place(f"{shown}/{stray}.yaml", 1, 1)
        complaints.append(Diagnostic(place, "E003", f"No spec has a file {stray}.yaml.", suggest(stray, FILES)))
    return sources, complaints


def _fit(model: type[BaseModel], source: Source, dropped: set[str]) -> tuple[BaseModel | None, list[Diagnostic]]:
    """Fits the data into a model. What does not fit is left out, so that the rest can still be checked."""
    complaints: dict[KeyPath, Diagnostic] = {}
    data = source.data
    while True:
        try:
            return model.model_validate_json(json.dumps(data)), [*complaints.values()]
        except ValidationError as error:
            found = dict(_located(source, error))
            for path, each in found.items():
                # What was dropped for one complaint is then missing; that is no complaint of its own.
                complaints.setdefault(path, _complaint(model, source, path, each))
            if data is None or not [path for path in found if _drop(data, path, dropped)]:
                return None, [*complaints.values()]


def _located(source: Source, error: ValidationError) -> list[tuple[KeyPath, Any]]:
    """The errors by their real path: pydantic's has the tags of unions among the keys."""
    return [(_real_path(source, tuple(each["loc"])), each) for each in error.errors(include_url=False)]


def _real_path(source: Source, loc: KeyPath) -> KeyPath:
    path: KeyPath = ()
    for step in loc[:-1]:
        if (*path, step) in source.values:
            path = (*path, step)
    last = loc[-1:]
    return (*path, *last) if last and ((*path, *last) in source.values or not _is_tag(last[0])) else path


def _is_tag(step: str | int) -> bool:
    return isinstance(step, str) and (
        step in ("int", "str", "bool", "float", "plain", "conditional", "everyone", "some")
        or "[" in step
        or step.startswith("constrained")
        or step == "__root__"
    )


def _drop(data: Any, path: KeyPath, dropped: set[str]) -> bool:
    """Takes the element around an error out of the data; False if that would be all of it."""
    for end in range(len(path), 0, -1):
        holder = data
        for step in path[: end - 1]:
            holder = holder[step] if _has(holder, step) else None
        if _has(holder, path[end - 1]) and not (end == 1 and len(path) > 1):
            dropped.update(str(step) for step in path)
            del holder[path[end - 1]]
            return True
    return False


def _has(holder: Any, step: str | int) -> bool:
    if isinstance(holder, dict):
        return step in holder
    return isinstance(holder, list) and isinstance(step, int) and step < len(holder)


def _complaint(model: type[BaseModel], source: Source, path: KeyPath, error: Any) -> Diagnostic:
    kind: str = error["type"]
    where = ".".join(map(str, path)) or "the file"
    name = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        place = source.place(path, key=True)
        known = _keys_at(model, path[:-1])
        return Diagnostic(place, "E004", f"The key '{name}' is not part of the language here.", suggest(name, known))
    if kind == "missing":
        place = source.place(path[:-1], key=True) if len(path) > 1 else source.place(())
        inside = ".".join(map(str, path[:-1])) or "the file"
        return Diagnostic(place, "E006", f"The key '{name}' is missing in {inside}.", f"Add '{name}: …'.")
    if error["loc"] and error["loc"][-1] == "[key]":
        place = source.place(path, key=True)
        return Diagnostic(place, "E007", f"'{name}' is no valid name here.", _explain(error))
    place = source.place(path)
    if kind in ("literal_error", "string_pattern_mismatch") or "than" in kind or "too_" in kind:
        shown = json.dumps(error["input"])
        return Diagnostic(place, "E007", f"{where} cannot be {shown[:60]}.", _explain(error))
    return Diagnostic(place, "E005", f"{where} has the wrong type.", _explain(error))


def _explain(error: Any) -> str:
    context = error.get("ctx", {})
    if "pattern" in context:
        return f"It must match {context['pattern']}"
    return f"{error['msg'].removeprefix('Input ').capitalize()}."


def _keys_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys that the language knows at a path."""
    here: Any = model
    for step in path:
        here = _step_into(here, step)
    here = _bare(here)
    if isinstance(here, type) and issubclass(here, BaseModel):
        return [field.alias or name for name, field in here.model_fields.items()]
    return []


def _step_into(annotation: Any, step: str | int) -> Any:
    here = _bare(annotation)
    if isinstance(here, type) and issubclass(here, RootModel):
        return _step_into(here.model_fields["root"].annotation, step)
    if isinstance(here, type) and issubclass(here, BaseModel):
        for name, field in here.model_fields.items():
            if step in (name, field.alias):
                return field.annotation
        return None
    if get_origin(here) is dict:
        return get_args(here)[1]
    return get_args(here)[0] if get_origin(here) is tuple else None


def _bare(annotation: Any) -> Any:
    """An annotation without Annotated and None; of a union, the member that has keys."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (typing.Union, python_types.UnionType):
        members = [_bare(each) for each in get_args(annotation)]
        structured = [each for each in members if get_origin(each) is dict or isinstance(each, type) and issubclass(each, BaseModel)]
        return structured[0] if structured else members[0]
    return annotation
