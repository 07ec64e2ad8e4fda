"""Series of migrations in a database, each with a folder of generated SQL.

What PostgreSQL keeps by default is in `generated/<system>/sql` and has the series `<system>`. Where a
deployment has entities kept there that another engine keeps by default, `generated/<system>/<folder>` has all
of them, and their series is `<system>/<folder>`.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.stores.layouts.postgres import KeptInPostgres

_OWN = "sql"


def name_series(system: str, kept: KeptInPostgres) -> str:
    """Name the series that has the tables of an entity."""
    return system if kept.folder == _OWN else f"{system}/{kept.folder}"


def find_folder(series: str) -> Traversable:
    """Find the generated SQL of a series."""
    system, _, folder = series.partition("/")
    return files(f"generated.{system}").joinpath(folder or _OWN)


def list_databases(system: System, engine: str | None = None) -> dict[str, str]:
    """List the variables with the databases of a system, and the series of each.

    With the engine of a deployment, it is what that deployment needs.
    """
    found: dict[str, str] = {}
    for lifecycle in system.lifecycles.values():
        storage = _place(system, lifecycle, engine)
        if isinstance(storage, KeptInPostgres):
            found[storage.url] = name_series(system.name, storage)
        elif (outbox := getattr(storage, "outbox", None)) is not None:
            found[outbox.url] = system.name
    return found


def _place(system: System, lifecycle: Lifecycle, engine: str | None) -> Any:
    """Return the storage of an entity; None where it has none in a database."""
    if engine is None or engine == lifecycle.engine:
        return lifecycle.storage
    return system.storage.get(engine, {}).get(lifecycle.entity)
