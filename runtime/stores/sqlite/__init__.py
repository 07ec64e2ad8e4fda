"""The store in one file of SQLite, for a system that has no server to lean on."""

from __future__ import annotations

from runtime.stores.sqlite.file import File, Unavailable
from runtime.stores.sqlite.store import SqliteStore

__all__ = ["File", "SqliteStore", "Unavailable"]
