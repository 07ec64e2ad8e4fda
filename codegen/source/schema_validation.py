"""Fits what a file says into its model, and says in plain words what does not fit (E004 to E009)."""

from __future__ import annotations

import json
import types as python_types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, RootModel, ValidationError

from codegen.diagnostics import Diagnostic, closest
from codegen.source.yaml_reader import Path, Source

_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_TAGS = ("int", "str", "bool", "float", "plain", "conditional", "everyone", "some")


def fit(
    model: type[BaseModel], source: Source, dropped: set[str]
) -> tuple[BaseModel | None, list[Diagnostic]]:
    """The file as a model. What does not fit is left out, so that the rest can still be checked."""
    complaints: list[Diagnostic] | None = None
    while True:
        try:
            return model.model_validate_json(json.dumps(source.data)), complaints or []
        except ValidationError as error:
            problems = _problems(source, error)
            if complaints is None:
                # What a later round finds is only that something left out is missing now.
                complaints = list(_complaints(model, source, problems, dropped))
            if not _leave_out(source, problems, dropped):
                return None, complaints


def repeated(source: Source) -> Iterator[Diagnostic]:
    """Entries that a list of names has twice. Permissions have a rule of their own."""
    open_values: list[tuple[Path, Any]] = [((), source.data)]
    while open_values:
        path, value = open_values.pop()
        if isinstance(value, dict):
            open_values += [((*path, key), each) for key, each in value.items()]
        elif isinstance(value, list) and path[:1] != ("may_call",):
            open_values += [((*path, index), each) for index, each in enumerate(value)]
            texts = [each if isinstance(each, str | int) else None for each in value]
            for index, text in enumerate(texts):
                if text is not None and text in texts[:index]:
                    message = f"'{text}' is in this list twice."
                    yield Diagnostic(source.place((*path, index)), "E009", message, "Remove one of them.")


def _problems(source: Source, error: ValidationError) -> dict[Path, list[Any]]:
    """The errors by their real path: pydantic's has the members of unions among the keys."""
    found: dict[Path, list[Any]] = {}
    for each in error.errors(include_url=False):
        found.setdefault(_real_path(source, tuple(each["loc"])), []).append(each)
    return found


def _real_path(source: Source, location: Path) -> Path:
    path: Path = ()
    for step in location[:-1]:
        if (*path, step) in source.values:
            path = (*path, step)
    last = location[-1:]
    return (*path, *last) if last and ((*path, *last) in source.values or not _is_tag(last[0])) else path


def _is_tag(step: str | int) -> bool:
    return isinstance(step, str) and (step in _TAGS or "[" in step or step.startswith("constrained"))


def _leave_out(source: Source, problems: dict[Path, list[Any]], dropped: set[str]) -> bool:
    """Takes the element around each error out; False if that would be the whole file."""
    elements = {_element(source.data, path) for path in problems}
    if () in elements:
        return False
    # From the end, so that what is taken out of a list does not move what is still to be taken out.
    for path in sorted(
        elements, key=lambda path: [(isinstance(step, str), step) for step in path], reverse=True
    ):
        if _has(source.data, path):
            for name in _names_in(source.forget(path), path[-1]):
                # A name in the wrong case is still the name of what cannot be read.
                dropped.update((name, name.lower(), name.upper(), name[:1].upper() + name[1:]))
    return True


def _names_in(value: Any, key: str | int) -> list[str]:
    """What is defined by an element: itself, and everything inside it."""
    names, open_values = [str(key)], [value]
    while open_values:
        here = open_values.pop()
        names += here if isinstance(here, dict) else ()
        open_values += here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
    return names


def _element(data: Any, path: Path) -> Path:
    """The thing at a path, or what is around it when it is missing."""
    return next((path[:end] for end in range(len(path), 0, -1) if _has(data, path[:end])), ())


def _has(data: Any, path: Path) -> bool:
    for step in path:
        if isinstance(data, dict):
            if step not in data:
                return False
        elif not (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            return False
        data = data[step]
    return True


def _complaints(
    model: type[BaseModel], source: Source, problems: dict[Path, list[Any]], dropped: set[str]
) -> Iterator[Diagnostic]:
    missing = {path for path, errors in problems.items() if errors[0]["type"] == "missing"}
    around = {path[:end] for path in problems for end in range(len(path))}
    for path, errors in problems.items():
        if errors[0]["type"] == "extra_forbidden":
            name = str(path[-1])
            present = {str(key[-1]) for key in source.keys if key[:-1] == path[:-1]}
            known = _keys_at(model, path[:-1], source.data)
            meant = closest(name, [key for key in known if key not in present])
            # A misspelt key is missing under its right name, too; that is no complaint of its own.
            missing.discard((*path[:-1], meant))
            dropped.add(meant)
            message = f"The key '{name}' is not part of the language here."
            hint = f"Did you mean '{meant}'?" if meant else f"Known: {', '.join(known)}."
            yield Diagnostic(source.place(path, key=True), "E004", message, hint)
    for path, errors in problems.items():
        if path in missing:
            inside = ".".join(map(str, path[:-1])) or "the file"
            place = source.place(path[:-1], key=isinstance([0, *path][-2], str))
            yield Diagnostic(
                place, "E006", f"The key '{path[-1]}' is missing in {inside}.", f"Add '{path[-1]}: …'."
            )
        elif errors[0]["type"] == "too_short" and path in around:
            # It is too short because of an entry that has a complaint.
            continue
        elif errors[0]["type"] not in ("missing", "extra_forbidden"):
            yield _misfit(source, path, errors)


def _misfit(source: Source, path: Path, errors: list[Any]) -> Diagnostic:
    if errors[0]["loc"][-1:] == ("[key]",):
        place = source.place(path, key=True)
        return Diagnostic(place, "E007", f"'{path[-1]}' is no valid name here.", _explain(errors[0]))
    place = source.place(path)
    if wrong := [each for each in errors if each["type"] not in _KINDS]:
        value = json.dumps(wrong[0]["input"], ensure_ascii=False, default=str)[:60]
        return Diagnostic(place, "E007", f"{_subject(path)} cannot be {value}.", _explain(wrong[0]))
    kinds = " or ".join(dict.fromkeys(_KINDS[each["type"]] for each in errors))
    return Diagnostic(place, "E005", f"{_subject(path)} has the wrong type.", f"It must be {kinds}.")


def _explain(error: Any) -> str:
    context = error.get("ctx", {})
    if "pattern" in context:
        return f"It must match {context['pattern']}"
    return f"{error['msg'].removeprefix('Input ').capitalize()}."


def _subject(path: Path) -> str:
    return ".".join(map(str, path)) or "The file"


def _keys_at(model: type[BaseModel], path: Path, data: Any) -> list[str]:
    """The keys that the language knows at a path."""
    here: Any = model
    for step in path:
        here = _step_into(here, step, data)
        data = data[step]
    here = _bare(here, data)
    if isinstance(here, type) and issubclass(here, BaseModel):
        return [field.alias or name for name, field in here.model_fields.items()]
    return []


def _step_into(annotation: Any, step: str | int, data: Any) -> Any:
    here = _bare(annotation, data)
    if isinstance(here, type) and issubclass(here, RootModel):
        return _step_into(here.model_fields["root"].annotation, step, data)
    if isinstance(here, type) and issubclass(here, BaseModel):
        for name, field in here.model_fields.items():
            if step in (name, field.alias):
                return field.annotation
        return None
    if get_origin(here) is dict:
        return get_args(here)[1]
    return get_args(here)[0] if get_origin(here) is tuple else None


def _bare(annotation: Any, data: Any) -> Any:
    """An annotation without Annotated and None; of a union, the member that has keys and fits the data."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0], data)
    if get_origin(annotation) in (typing.Union, python_types.UnionType):
        members = [_bare(each, data) for each in get_args(annotation)]
        with_keys = [
            each
            for each in members
            if get_origin(each) is dict or (isinstance(each, type) and issubclass(each, BaseModel))
        ]
        return next((each for each in with_keys if _is_told(each, data)), [*with_keys, *members][0])
    return annotation


def _is_told(model: Any, data: Any) -> bool:
    """Whether a member of a union has a word that tells it from the others, and the data says that word."""
    fields = getattr(model, "model_fields", {})
    told = {name: field for name, field in fields.items() if get_origin(field.annotation) is typing.Literal}
    return any(
        isinstance(data, dict) and data.get(name) in get_args(field.annotation)
        for name, field in told.items()
        if len(get_args(field.annotation)) == 1
    )
