"""Redis as a store: what the generated scripts do there, many entities in each call."""

from __future__ import annotations

from runtime.redis.blocking import BlockingServer
from runtime.redis.server import Server
from runtime.redis.store import RedisStore

__all__ = ["BlockingServer", "RedisStore", "Server"]
