"""Load job functions from the modules that a user names: `module` or `module:registry`, comma-separated."""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handlers.jobs.registry import RegisteredFunction, all_registered, separate_registry, wrap_function
from runtime.node.settings import SettingsError


class HandlersUnusable(Exception):
    """The job functions cannot be loaded; the message says why."""


def load(names: str | None) -> Mapping[str, RegisteredFunction]:
    """Load the functions by job type: of the named modules, or else those that are registered already.

    A module alone registers its functions with `@job`. After a colon comes the name of a dictionary in it,
    which has the function of each type.
    """
    if not (names or "").strip():
        return all_registered()
    # An installed command has no working directory on its import path, where users have their modules.
    directory = str(Path.cwd())
    if directory not in sys.path and "" not in sys.path:
        sys.path.insert(0, directory)
    found: dict[str, RegisteredFunction] = {}
    for name in (names or "").split(","):
        module, _, registry = name.strip().partition(":")
        with separate_registry() as own:
            loaded = _import_module(module)
        found |= (
            _read_registry(loaded, registry, name.strip()) if registry else {**_find_own_functions(), **own}
        )
    if not found:
        raise HandlersUnusable(f"{names} has no job function; one is registered with @job(TYPE)")
    return found


def load_setting(variable: str, names: str | None) -> Mapping[str, RegisteredFunction]:
    """Load the functions that a variable names; raise SettingsError where they cannot be loaded."""
    try:
        return load(names)
    except HandlersUnusable as error:
        raise SettingsError([f"{variable}: {error}"]) from error


def find_program(function: RegisteredFunction) -> str:
    """Find the module, or the file, that registers a function when it is imported."""
    module = function.function.__module__
    if module != "__main__":
        return module
    main = sys.modules[module]
    spec = getattr(main, "__spec__", None)
    return spec.name if spec is not None else str(getattr(main, "__file__", "") or "")


def import_program(name: str) -> Mapping[str, RegisteredFunction]:
    """Import the module or file that `find_program` named in the worker; return the registered functions."""
    if not name.endswith(".py"):
        _import_module(name)
        return all_registered()
    try:
        runpy.run_path(name, run_name="__job_functions__")
    except Exception as error:
        raise HandlersUnusable(f"{name} cannot be run: {type(error).__name__}: {error}") from error
    return all_registered()


def _import_module(name: str) -> Any:
    if not all(part.isidentifier() for part in name.split(".")):
        raise HandlersUnusable(f"{name!r} is not the name of a module")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise HandlersUnusable(f"there is no module {name} (looked for in {Path.cwd()} too)") from error
        raise HandlersUnusable(f"{name} cannot be imported: {error}") from error
    except Exception as error:
        raise HandlersUnusable(f"{name} cannot be imported: {type(error).__name__}: {error}") from error


def _find_own_functions() -> dict[str, RegisteredFunction]:
    return {job_type: each for job_type, each in all_registered().items() if not each.is_built_in}


def _read_registry(module: Any, registry: str, name: str) -> dict[str, RegisteredFunction]:
    functions = getattr(module, registry, None)
    if functions is None:
        raise HandlersUnusable(f"{name}: the module has no {registry}")
    if not isinstance(functions, Mapping):
        raise HandlersUnusable(f"{name} must be a dictionary of functions by job type, not {functions!r:.50}")
    for job_type, function in functions.items():
        if not isinstance(job_type, str) or not callable(function):
            raise HandlersUnusable(f"{name}: {job_type!r} has no function but {function!r:.50}")
    return {
        job_type: each if isinstance(each, RegisteredFunction) else wrap_function(job_type, each)
        for job_type, each in functions.items()
    }
