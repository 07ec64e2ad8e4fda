"""The engine in Redis: the lifecycle as a script, records as hashes, and one call of the script a step."""

from runtime.stores.redis.connection.blocking import BlockingServer
from runtime.stores.redis.connection.server import Server
from runtime.stores.redis.store import RedisStore

__all__ = ["BlockingServer", "RedisStore", "Server"]
