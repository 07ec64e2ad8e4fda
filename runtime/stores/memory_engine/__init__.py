"""The engine in memory: the semantics plus dictionaries, ordered indexes and subscriptions."""

from runtime.stores.memory_engine.store import MemoryStore

__all__ = ["MemoryStore"]
