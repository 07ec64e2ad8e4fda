"""Schema validation: parsed YAML -> model, with errors in plain words (E004 to E010)."""

from __future__ import annotations

import json
import types as python_types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, RootModel, ValidationError

from codegen.diagnostics import Diagnostic, find_closest
from codegen.language.moved_storage import iter_moved, move_storage
from codegen.language.renamed_keys import iter_bare, iter_joined, iter_renamed, set_value
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
_TAGS = ("one", "several", "int", "str", "bool", "float", "plain", "conditional", "everyone", "some")


def validate(
    model: type[BaseModel], source: Source, dropped: set[str]
) -> tuple[BaseModel | None, list[Diagnostic]]:
    """Validate a file against its model. Invalid elements are dropped, so that the rest can be checked."""
    complaints: list[Diagnostic] | None = None
    while True:
        try:
            return model.model_validate_json(json.dumps(source.data)), complaints or []
        except ValidationError as error:
            problems = _group_problems(source, error)
            if complaints is None:
                # Later rounds only find that a dropped element is missing.
                complaints = list(_iter_diagnostics(model, source, problems, dropped))
            if not _drop_invalid(source, problems, dropped):
                return None, complaints


def rename_old_keys(file: str, source: Source) -> Iterator[Diagnostic]:
    """Rename keys that had another name, and report each; all else is checked as if they had the new one."""
    for path, new in iter_renamed(file, source.data):
        message = f"The key '{path[-1]}' is called '{new}' now."
        yield Diagnostic(
            source.place(path, key=True), "E010", message, f"Rename it to '{new}'; it means the same."
        )
        source.rename(path, new)
    for path, new in [*iter_joined(file, source.data)]:
        message = f"The key '{path[-1]}' is gone: '{new}' may be a list now."
        hint = f"Make a list of '{new}' with both in it; it means the same."
        yield Diagnostic(source.place(path, key=True), "E010", message, hint)
        source.remove(path)
    for path, wrapped in [*iter_bare(file, source.data)]:
        ((kind, name),) = wrapped.items()
        message = f"'{name}' does not say whether it is a variable or a field of the record."
        yield Diagnostic(
            source.place(path), "E010", message, f"Write '{{{kind}: {name}}}'; it means the same."
        )
        set_value(source.data, path, wrapped)


def find_moved_keys(sources: dict[str, Source]) -> Iterator[Diagnostic]:
    """Report the keys that belong to another file now, and move what they say there."""
    for name, source in sources.items():
        for path, why, hint in iter_moved(name, source.data):
            message = f"The key '{path[-1]}' is gone: {why}."
            yield Diagnostic(source.place(path, key=True), "E010", message, hint)
    files = {name: source.data for name, source in sources.items()}
    try:
        moved = move_storage(files)
    except (AttributeError, KeyError, TypeError):
        return  # What it says is not what it could say once; it is dropped, and reported above.
    if moved and "storage" not in sources:
        folder = sources["lifecycle"].name.rpartition("/")[0]
        sources["storage"] = Source(f"{folder}/storage.yaml", "")
        sources["storage"].data = files["storage"]


def find_duplicates(source: Source) -> Iterator[Diagnostic]:
    """Find duplicate entries of lists of names. Permissions have a rule of their own."""
    pending: list[tuple[Path, Any]] = [((), source.data)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*path, key), each) for key, each in value.items()]
        elif isinstance(value, list) and path[:1] != ("may_call",):
            pending += [((*path, index), each) for index, each in enumerate(value)]
            texts = [each if isinstance(each, str | int) else None for each in value]
            for index, text in enumerate(texts):
                if text is not None and text in texts[:index]:
                    message = f"'{text}' is in this list twice."
                    yield Diagnostic(source.place((*path, index)), "E009", message, "Remove one of them.")


def _group_problems(source: Source, error: ValidationError) -> dict[Path, list[Any]]:
    """Group errors by their path in the file: pydantic's paths also have the members of unions."""
    found: dict[Path, list[Any]] = {}
    for each in error.errors(include_url=False):
        found.setdefault(_resolve_path(source, tuple(each["loc"])), []).append(each)
    return found


def _resolve_path(source: Source, location: Path) -> Path:
    path: Path = ()
    for step in location[:-1]:
        if (*path, step) in source.values:
            path = (*path, step)
    last = location[-1:]
    return (*path, *last) if last and ((*path, *last) in source.values or not _is_tag(last[0])) else path


def _is_tag(step: str | int) -> bool:
    return isinstance(step, str) and (step in _TAGS or "[" in step or step.startswith("constrained"))


def _drop_invalid(source: Source, problems: dict[Path, list[Any]], dropped: set[str]) -> bool:
    """Drop the element around each error; False if that would be the whole file."""
    elements = {_find_element(source.data, path) for path in problems}
    if () in elements:
        return False
    # From the end, so that the indexes of list items that are still to be dropped stay valid.
    for path in sorted(
        elements, key=lambda path: [(isinstance(step, str), step) for step in path], reverse=True
    ):
        if _has_path(source.data, path):
            for name in _list_names(source.remove(path), path[-1]):
                # References may use a name in the right case where its definition has the wrong one.
                dropped.update((name, name.lower(), name.upper(), name[:1].upper() + name[1:]))
    return True


def _list_names(value: Any, key: str | int) -> list[str]:
    """List the names that an element defines: its own, and all inside it."""
    names, pending = [str(key)], [value]
    while pending:
        here = pending.pop()
        names += here if isinstance(here, dict) else ()
        pending += here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
    return names


def _find_element(data: Any, path: Path) -> Path:
    """Find the path of an element, or of the nearest element around it if it is missing."""
    return next((path[:end] for end in range(len(path), 0, -1) if _has_path(data, path[:end])), ())


def _has_path(data: Any, path: Path) -> bool:
    for step in path:
        if isinstance(data, dict):
            if step not in data:
                return False
        elif not (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            return False
        data = data[step]
    return True


def _iter_diagnostics(
    model: type[BaseModel], source: Source, problems: dict[Path, list[Any]], dropped: set[str]
) -> Iterator[Diagnostic]:
    missing = {path for path, errors in problems.items() if errors[0]["type"] == "missing"}
    around = {path[:end] for path in problems for end in range(len(path))}
    for path, errors in problems.items():
        if errors[0]["type"] == "extra_forbidden":
            name = str(path[-1])
            present = {str(key[-1]) for key in source.keys if key[:-1] == path[:-1]}
            known = _list_keys(model, path[:-1], source.data)
            meant = find_closest(name, [key for key in known if key not in present])
            # A misspelt key is also missing under its right name; report it once.
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
            # It is too short because an invalid entry was dropped, which is reported.
            continue
        elif errors[0]["type"] not in ("missing", "extra_forbidden"):
            yield _describe_misfit(source, path, errors)


def _describe_misfit(source: Source, path: Path, errors: list[Any]) -> Diagnostic:
    if errors[0]["loc"][-1:] == ("[key]",):
        place = source.place(path, key=True)
        return Diagnostic(place, "E007", f"'{path[-1]}' is no valid name here.", _explain(errors[0]))
    place = source.place(path)
    if wrong := [each for each in errors if each["type"] not in _KINDS]:
        value = json.dumps(wrong[0]["input"], ensure_ascii=False, default=str)[:60]
        return Diagnostic(place, "E007", f"{_format_subject(path)} cannot be {value}.", _explain(wrong[0]))
    kinds = " or ".join(dict.fromkeys(_KINDS[each["type"]] for each in errors))
    return Diagnostic(place, "E005", f"{_format_subject(path)} has the wrong type.", f"It must be {kinds}.")


def _explain(error: Any) -> str:
    context = error.get("ctx", {})
    if "pattern" in context:
        return f"It must match {context['pattern']}"
    return f"{error['msg'].removeprefix('Input ').capitalize()}."


def _format_subject(path: Path) -> str:
    return ".".join(map(str, path)) or "The file"


def _list_keys(model: type[BaseModel], path: Path, data: Any) -> list[str]:
    """List the keys that the language has at a path."""
    here: Any = model
    for step in path:
        here = _step_into(here, step, data)
        data = data[step]
    here = _unwrap(here, data)
    if isinstance(here, type) and issubclass(here, BaseModel):
        return [field.alias or name for name, field in here.model_fields.items()]
    return []


def _step_into(annotation: Any, step: str | int, data: Any) -> Any:
    here = _unwrap(annotation, data)
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


def _unwrap(annotation: Any, data: Any) -> Any:
    """Unwrap Annotated and Optional; of a union, take the member that has keys and matches the data."""
    if get_origin(annotation) is Annotated:
        return _unwrap(get_args(annotation)[0], data)
    if get_origin(annotation) in (typing.Union, python_types.UnionType):
        members = [_unwrap(each, data) for each in get_args(annotation)]
        lists = [each for each in members if get_origin(each) is tuple]
        if isinstance(data, list) and lists:
            return lists[0]
        with_keys = [
            each
            for each in members
            if get_origin(each) is dict or (isinstance(each, type) and issubclass(each, BaseModel))
        ]
        return next((each for each in with_keys if _is_discriminated(each, data)), [*with_keys, *members][0])
    return annotation


def _is_discriminated(model: Any, data: Any) -> bool:
    """Whether a member of a union has a discriminator, a Literal of one value, and the data has it."""
    fields = getattr(model, "model_fields", {})
    literals = {
        name: field for name, field in fields.items() if get_origin(field.annotation) is typing.Literal
    }
    return any(
        isinstance(data, dict) and data.get(name) in get_args(field.annotation)
        for name, field in literals.items()
        if len(get_args(field.annotation)) == 1
    )
