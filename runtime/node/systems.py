"""Find systems and their deployments by name, and suggest the closest name when it is wrong."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.model.system import Deployment, System


class UnknownName(Exception):
    """An unknown name; the message is for the user who typed it."""


@cache
def system_names() -> tuple[str, ...]:
    """Return the names of all systems: the packages under `generated/` that have tables."""
    import generated

    packages = (each.name for each in pkgutil.iter_modules(generated.__path__) if each.ispkg)
    return tuple(
        sorted(
            name
            for name in packages
            if any(Path(root, name, "system.py").exists() for root in generated.__path__)
        )
    )


def load_system(name: str) -> System:
    """Load the generated tables of a system."""
    found: System = importlib.import_module(f"generated.{name}.system").SYSTEM
    return found


def find_system(name: str) -> System:
    """Load a system by a name that a user gave; raises UnknownName."""
    if name not in system_names():
        raise UnknownName(f"There is no system {name!r}.{suggest_name(name, system_names())}")
    return load_system(name)


def find_deployment(text: str) -> tuple[System, Deployment]:
    """Find a deployment by `<system>.<deployment>`; raises UnknownName."""
    name, dot, wanted = text.partition(".")
    if not dot:
        raise UnknownName(
            f"{text!r} is not <system>.<deployment>. There are: {', '.join(deployment_names())}."
        )
    system = find_system(name)
    if wanted not in system.deployments:
        raise UnknownName(f"There is no deployment {text!r}.{suggest_name(text, deployment_names())}")
    return system, system.deployments[wanted]


def deployment_names() -> list[str]:
    """Return the names of all deployments, as `<system>.<deployment>`."""
    return [f"{name}.{deployment}" for name in system_names() for deployment in load_system(name).deployments]


def outside_principals(system: System) -> list[str]:
    """Return the external principals: those with a permission for a method of an ingress node."""
    offered = {
        service
        for deployment in system.deployments.values()
        for node in deployment.ingress
        for service in deployment.nodes[node].serves
    }
    open_methods = [method.path for name in offered for method in system.services[name].methods]
    return [
        name
        for name in system.principals
        if any(name in system.matrix.get(path, ()) for path in open_methods)
    ]


def token_variable(principal: str) -> str:
    """Return the variable with the token of a principal for a client, where there are several."""
    return f"{principal.upper()}_TOKEN"


def find_closest(name: str, known: Iterable[str]) -> str:
    """Find the closest of the known names, or an empty text."""
    names = list(known)
    same = [each for each in names if each.casefold() == name.casefold()]
    return (same or difflib.get_close_matches(name, names, n=1, cutoff=0.5) or [""])[0]


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the closest name, or all of them."""
    names = list(known)
    if close := difflib.get_close_matches(name, names, n=1, cutoff=0.5):
        return f" Did you mean {close[0]!r}?"
    return f" There are: {', '.join(names)}." if names else " There are none."
