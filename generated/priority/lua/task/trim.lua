-- spec/priority/lifecycle.yaml entities.task.kept_in
-- Forgets what has expired, and sets of texts that no entity has any more.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_listed_completed tasks:status:completed
-- once key index_listed_failed    tasks:status:failed
-- once key index_listed_cancelled tasks:status:cancelled
-- once key known                  queue:capabilities
-- once key version                queue:capabilities:version
-- each key part.high              queue:high:cap:{signature}
-- each key part.medium            queue:medium:cap:{signature}
-- each key part.low               queue:low:cap:{signature}
-- once argument TASK_RETENTION_SECONDS
-- each argument signature

local KEYS_ONCE, KEYS_EACH = 5, 3
local ARGV_ONCE, ARGV_EACH = 1, 1
local index_listed_completed = KEYS[1]
local index_listed_failed = KEYS[2]
local index_listed_cancelled = KEYS[3]
local known = KEYS[4]
local version = KEYS[5]
local part = {high = 1, medium = 2, low = 3}
local TASK_RETENTION_SECONDS = tonumber(ARGV[1])
local trimmed = 0
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local latest = string.format('%.0f', now - TASK_RETENTION_SECONDS * 1000000)
for _, index in ipairs({index_listed_completed, index_listed_failed, index_listed_cancelled}) do
  local gone = redis.call('ZRANGEBYSCORE', index, '-inf', latest, 'LIMIT', 0, 1000)
  if #gone > 0 then
    trimmed = trimmed + redis.call('ZREM', index, unpack(gone))
  end
end

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local signature = ARGV[a + 1]
  if redis.call('EXISTS', KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]) == 0 and redis.call('HDEL', known,
      signature) == 1 then
    redis.call('INCR', version)
    trimmed = trimmed + 1
  end
end
return trimmed
