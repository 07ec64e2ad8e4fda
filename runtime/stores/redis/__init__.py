"""The engine in Redis: the lifecycle as a script, records as hashes, and one call of the script a step."""

from runtime.stores.redis.connection.blocking import BlockingRedisClient
from runtime.stores.redis.connection.client import RedisClient
from runtime.stores.redis.store import RedisStore

__all__ = ["BlockingRedisClient", "RedisClient", "RedisStore"]
