"""The history of entities that Redis keeps: written to PostgreSQL from a stream, and read back from there."""

from __future__ import annotations

from runtime.stores.history.blocking import BlockingHistory
from runtime.stores.history.reader import HistoryReader
from runtime.stores.history.writer import HistoryWriter

__all__ = ["BlockingHistory", "HistoryReader", "HistoryWriter"]
