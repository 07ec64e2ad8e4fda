"""The history of entities in Redis: written to PostgreSQL from the outbox stream, and read from there."""

from __future__ import annotations

from runtime.stores.history.blocking import BlockingHistory
from runtime.stores.history.reader import HistoryReader
from runtime.stores.history.writer import HistoryWriter

__all__ = ["BlockingHistory", "HistoryReader", "HistoryWriter"]
