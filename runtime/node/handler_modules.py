"""The `--handlers` option: modules of a user with the functions that a worker runs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_SUFFIX = "HANDLERS"


class HandlersRefused(ValueError):
    """Modules that are not accepted, or not found; the message says why."""


def find_handler_variables(names: Iterable[str]) -> list[str]:
    """Find the variables for modules of a user: HANDLERS, or one that ends in _HANDLERS."""
    return [name for name in names if name == _SUFFIX or name.endswith(f"_{_SUFFIX}")]


def add_handlers(
    settings: Mapping[str, str], variables: Iterable[str], handlers: str | None, where: str
) -> dict[str, str]:
    """Return the settings with the modules of `--handlers`; raises where one of them is not found."""
    known = find_handler_variables(variables)
    if handlers and not known:
        raise HandlersRefused(f"{where} has no worker that loads functions, so it takes no --handlers.")
    made = {**settings, **(dict.fromkeys(known, handlers) if handlers else {})}
    for variable in known:
        for name in (made.get(variable) or "").split(","):
            module = name.strip().partition(":")[0]
            if name.strip() and not _is_importable(module):
                raise HandlersRefused(
                    f"There is no module {module or repr(name)} (looked for in {Path.cwd()} too)."
                )
    return made


def _is_importable(module: str) -> bool:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    if not all(part.isidentifier() for part in module.split(".")):
        return False
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
    except Exception:
        return True  # The worker reports a package that cannot be imported, with its exception.
