-- spec/priority/lifecycle.yaml entities.worker.kept_in
-- Forgets what has expired, and sets of texts that no entity has any more.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_listed_dead workers:status:dead
-- once argument TASK_RETENTION_SECONDS

local KEYS_ONCE, KEYS_EACH = 1, 0
local ARGV_ONCE, ARGV_EACH = 1, 0
local index_listed_dead = KEYS[1]
local TASK_RETENTION_SECONDS = tonumber(ARGV[1])
local trimmed = 0
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local latest = string.format('%.0f', now - TASK_RETENTION_SECONDS * 1000000)
for _, index in ipairs({index_listed_dead}) do
  local gone = redis.call('ZRANGEBYSCORE', index, '-inf', latest, 'LIMIT', 0, 1000)
  if #gone > 0 then
    trimmed = trimmed + redis.call('ZREM', index, unpack(gone))
  end
end
return trimmed
