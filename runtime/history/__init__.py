"""The history of entities that Redis keeps: written to PostgreSQL from a stream, and read back from there."""

from __future__ import annotations

from runtime.history.blocking import BlockingHistory
from runtime.history.reader import HistoryReader
from runtime.history.writer import HistoryWriter

__all__ = ["BlockingHistory", "HistoryReader", "HistoryWriter"]
