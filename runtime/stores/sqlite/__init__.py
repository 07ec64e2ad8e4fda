"""The store in one file of SQLite, for a system that has no server to lean on."""

from __future__ import annotations

from runtime.stores.sqlite.database import FileUnavailable, SqliteDatabase
from runtime.stores.sqlite.store import SqliteStore

__all__ = ["FileUnavailable", "SqliteDatabase", "SqliteStore"]
