"""The store in one file of SQLite, for a system that has no server to lean on."""

from __future__ import annotations

from runtime.sqlite.file import File, Unavailable
from runtime.sqlite.store import SqliteStore

__all__ = ["File", "SqliteStore", "Unavailable"]
