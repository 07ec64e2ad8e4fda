"""Find components whose handler is missing, or lacks a method that the spec names, before anything starts."""

from __future__ import annotations

import importlib
import inspect
import re
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from runtime.model.system import Method, System
from runtime.node.systems import find_closest
from runtime.node.wiring import class_name, needs_no_handler


class HandlersMissing(Exception):
    """Missing handlers. Each problem has the location, what is missing, and a hint."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def require_handlers(system: System, components: Iterable[str]) -> None:
    """Raise HandlersMissing unless every component has a class with all methods that it serves."""
    if problems := [each for component in components for each in find_problems(system, component)]:
        raise HandlersMissing(problems)


def find_problems(system: System, component: str) -> Iterator[str]:
    """Find the problems of the handler of one component, one for each cause."""
    if needs_no_handler(system, component):
        return
    place = find_location(system.name, "components", component)
    file = f"handlers/{system.name}/{component}.py"
    wanted = class_name(component)
    module_name = f"handlers.{system.name}.{component}"
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and module_name.startswith(error.name or " "):
            hint = find_closest(f"{component}.py", _list_files(system.name))
            yield _format_problem(
                place,
                f"The component '{component}' has no handler: there is no {file}.",
                f"Did you mean '{hint}'?" if hint else f"Create it, with a class {wanted}.",
            )
        else:
            yield _format_problem(
                place, f"The handler of '{component}' cannot be imported: {_format_import_error(error)}.", ""
            )
        return
    handler = getattr(module, wanted, None)
    if not inspect.isclass(handler):
        hint = find_closest(wanted, _list_classes(module))
        yield _format_problem(
            place,
            f"The component '{component}' has no handler: {file} has no class {wanted}.",
            f"Did you mean '{hint}'?" if hint else f"Write a class {wanted} there.",
        )
        return
    for method in _find_methods(system, component):
        if not callable(getattr(handler, method.attribute, None)):
            service = method.service.rpartition(".")[2]
            names = [each for each in list_public_names(handler) if callable(getattr(handler, each))]
            hint = find_closest(method.attribute, names)
            yield _format_problem(
                find_location(system.name, "services", service, "methods", method.name),
                f"'{component}' serves {method}, but {wanted} in {file} has no method {method.attribute}.",
                f"Did you mean '{hint}'?" if hint else f"Write an async method {method.attribute} there.",
            )


def find_location(system: str, *path: str) -> str:
    """Find a key in services.yaml, as file:line:column; the file alone where the spec is not there."""
    import generated

    shown = f"spec/{system}/services.yaml"
    for root in generated.__path__:
        file = Path(root).parent / shown
        if file.is_file() and (found := _find_key(file.read_text(encoding="utf-8").splitlines(), path)):
            return f"{shown}:{found[0]}:{found[1]}"
    return shown


def _find_key(lines: list[str], path: tuple[str, ...]) -> tuple[int, int] | None:
    """Find line and column of a key in block style, each key of the path deeper than the one before."""
    depth, wanted = -1, list(path)
    for number, line in enumerate(lines, 1):
        found = re.match(r"( *)([A-Za-z_]\w*)\s*:", line)
        if found and found[2] == wanted[0] and len(found[1]) > depth:
            depth = len(found[1])
            del wanted[0]
            if not wanted:
                return number, depth + 1
    return None


def _find_methods(system: System, component: str) -> Iterator[Method]:
    for service in system.services.values():
        if service.component == component:
            yield from service.methods


def _list_files(system: str) -> list[str]:
    roots = importlib.import_module("handlers").__path__
    return sorted(path.name for root in roots for path in Path(root, system).glob("*.py"))


def _list_classes(module: ModuleType) -> list[str]:
    own = inspect.getmembers(module, inspect.isclass)
    return [name for name, each in own if each.__module__.partition(".")[0] == "handlers"]


def list_public_names(handler: type[object]) -> list[str]:
    """List the public names of a class and of its base classes."""
    return [name for name in dir(handler) if not name.startswith("_")]


def _format_import_error(error: Exception) -> str:
    """Format an import error with the line of the handlers that raised it."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "/handlers/" in each.filename]
    where = ""
    if frames:
        tail = frames[-1].filename.rpartition("/handlers/")[2]
        where = f" (handlers/{tail}:{frames[-1].lineno})"
    return f"{type(error).__name__}: {error}{where}"


def _format_problem(place: str, message: str, hint: str) -> str:
    return f"{place}: error: {message}" + (f"\n  hint: {hint}" if hint else "")
