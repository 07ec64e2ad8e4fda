"""The PostgreSQL engine: runs the generated SQL with as few round trips as possible."""

from __future__ import annotations

from runtime.stores.postgres.database import Database
from runtime.stores.postgres.store import PostgresStore

__all__ = ["Database", "PostgresStore"]
