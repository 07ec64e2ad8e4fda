"""Loads job functions from modules that a user names: `module`, or `module:registry`; several with commas."""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handlers.jobs.registry import Registered, all_registered, apart, registered
from runtime.node.settings import SettingsError


class HandlersUnusable(Exception):
    """The job functions cannot be loaded; the message says why."""


def load(names: str | None) -> Mapping[str, Registered]:
    """The functions by job type: of the modules that are named, or else those that are there anyway.

    A module alone registers its functions with `@job`. After a colon comes the name of a dictionary in it,
    which has the function of each type.
    """
    if not (names or "").strip():
        return all_registered()
    # What is started as a command finds its own modules only, and not those of whoever started it.
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    found: dict[str, Registered] = {}
    for name in (names or "").split(","):
        module, _, registry = name.strip().partition(":")
        with apart() as own:
            loaded = _imported(module)
        found |= _listed(loaded, registry, name.strip()) if registry else {**_registered_before(), **own}
    if not found:
        raise HandlersUnusable(f"{names} has no job function; one is registered with @job(TYPE)")
    return found


def load_setting(variable: str, names: str | None) -> Mapping[str, Registered]:
    """Load the functions that a variable names; what is wrong with it is told like any wrong setting."""
    try:
        return load(names)
    except HandlersUnusable as error:
        raise SettingsError([f"{variable}: {error}"]) from error


def program_of(function: Registered) -> str:
    """The module, or the file, that registers a function when it is imported."""
    module = function.function.__module__
    if module != "__main__":
        return module
    main = sys.modules[module]
    spec = getattr(main, "__spec__", None)
    return spec.name if spec is not None else str(getattr(main, "__file__", "") or "")


def import_program(name: str) -> Mapping[str, Registered]:
    """The functions that are registered once what `program_of` has named is imported in this process too."""
    if not name.endswith(".py"):
        _imported(name)
        return all_registered()
    try:
        runpy.run_path(name, run_name="__job_functions__")
    except Exception as error:
        raise HandlersUnusable(f"{name} cannot be run: {type(error).__name__}: {error}") from error
    return all_registered()


def _imported(name: str) -> Any:
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


def _registered_before() -> dict[str, Registered]:
    return {job_type: each for job_type, each in all_registered().items() if not each.is_built_in}


def _listed(module: Any, registry: str, name: str) -> dict[str, Registered]:
    listed = getattr(module, registry, None)
    if listed is None:
        raise HandlersUnusable(f"{name}: the module has no {registry}")
    if not isinstance(listed, Mapping):
        raise HandlersUnusable(f"{name} must be a dictionary of functions by job type, not {listed!r:.50}")
    for job_type, function in listed.items():
        if not isinstance(job_type, str) or not callable(function):
            raise HandlersUnusable(f"{name}: {job_type!r} has no function but {function!r:.50}")
    return {
        job_type: each if isinstance(each, Registered) else registered(job_type, each)
        for job_type, each in listed.items()
    }
