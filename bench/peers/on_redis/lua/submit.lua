-- The least that a submit with priorities can be: a hash, and a place in a sorted set.
redis.call('HSET', KEYS[1], 'payload', ARGV[2])
return redis.call('ZADD', KEYS[2], ARGV[1], KEYS[1])
