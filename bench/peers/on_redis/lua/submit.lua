-- Minimal submit with a priority: a hash, and an entry of a sorted set.
redis.call('HSET', KEYS[1], 'payload', ARGV[2])
return redis.call('ZADD', KEYS[2], ARGV[1], KEYS[1])
