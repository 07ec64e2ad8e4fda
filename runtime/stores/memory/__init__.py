"""The engine in memory: the semantics plus dictionaries, ordered indexes and subscriptions."""

from runtime.stores.memory.store import MemoryStore
from runtime.stores.memory.table import MemoryTable

__all__ = ["MemoryStore", "MemoryTable"]
