-- spec/priority/lifecycle.yaml entities.task.kept_in.indexes
-- Which of an index have been there for so long, by the clock of Redis; nothing is changed.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index {index}
-- once argument after
-- once argument offset
-- once argument most

local KEYS_ONCE, KEYS_EACH = 1, 0
local ARGV_ONCE, ARGV_EACH = 3, 0
local index = KEYS[1]
local after = ARGV[1]
local offset = ARGV[2]
local most = ARGV[3]
local time = redis.call('TIME')
local latest = time[1] * 1000000 + time[2] - after * 1000000
return redis.call('ZRANGEBYSCORE', index, '-inf', string.format('%.0f', latest), 'LIMIT', offset, most)
