-- spec/priority/lifecycle.yaml entities.task.lease
-- Lets a lease end later; its holder alone may.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_running executing:deadlines
-- each key hash          tasks:{task_id}
-- each argument key
-- each argument believed.assigned_worker_id
-- each argument fence
-- each argument seconds

local KEYS_ONCE, KEYS_EACH = 1, 1
local ARGV_ONCE, ARGV_EACH = 0, 4
local index_running = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local answers = {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local believed_assigned_worker_id = ARGV[a + 2]
  local fence = ARGV[a + 3]
  local seconds = ARGV[a + 4]
  local status, holder, taken = unpack(redis.call('HMGET', hash, 'status', 'assigned_worker_id', 'attempt'))
  if status ~= 'executing' or holder ~= believed_assigned_worker_id or taken ~= fence then
    answers[n] = {'lost', status or ''}
  else
    local ends = string.format('%.0f', now + seconds * 1000000)
    redis.call('HSET', hash, 'deadline_at', ends)
    redis.call('ZADD', index_running, ends, key)
    answers[n] = {'done', status, ends}
  end
end

return answers
