"""Redis as a store: what the generated scripts do there, many entities in each call."""

from __future__ import annotations

from runtime.stores.redis.connection.blocking import BlockingServer
from runtime.stores.redis.connection.server import Server
from runtime.stores.redis.store import RedisStore

__all__ = ["BlockingServer", "RedisStore", "Server"]
