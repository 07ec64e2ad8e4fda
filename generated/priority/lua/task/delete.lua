-- spec/priority/lifecycle.yaml entities.task.delete
-- An administrator purges a dead letter, or it has been there for too long.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_dead               queue:dlq
-- once key index_listed.dead_letter tasks:status:dead_letter
-- each key hash                     tasks:{task_id}
-- once argument actor
-- once argument way
-- once argument DLQ_RETENTION_SECONDS
-- each argument key
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 2, 1
local ARGV_ONCE, ARGV_EACH = 3, 1
local index_dead = KEYS[1]
local index_listed = {dead_letter = KEYS[2]}
local actor = ARGV[1]
local way = ARGV[2]
local DLQ_RETENTION_SECONDS = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local DONE, SAME, NONE, STATE, LOST = 'done', 'same', 'none', 'state', 'lost'
local EARLY, AGAIN, HOLDS, WAY = 'early', 'again', 'holds', 'way'

-- Indexes are written at the end, each in one command for all entities.
local zrem, srem, zadd, sadd = {}, {}, {}, {}

local function put(lists, key, first, second)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  local n = #list
  list[n + 1] = first
  if second then
    list[n + 2] = second
  end
end

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local row = redis.call('HMGET', hash, 'status', 'trace_id', 'completed_at', '.given')
  local was_status, was_trace_id, was_completed_at, given = unpack(row)
  -- What nobody has written since then is as it was created.
  given = given and cjson.decode(given) or {}
  was_trace_id = was_trace_id or given['trace_id']

  if way ~= 'due' and way ~= 'plain' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif was_status ~= 'dead_letter' then
    answers[n] = {STATE, was_status}
  elseif way == 'due' and not (was_completed_at and tonumber(was_completed_at) + DLQ_RETENTION_SECONDS * 1000000 <= now) then
    answers[n] = {EARLY, was_status}
  else
    seen[hash] = true
    put(zrem, index_dead, key)
    put(zrem, index_listed.dead_letter, key)
    redis.call('DEL', hash)
    answers[n] = {DONE, 'dead_letter', was_trace_id or ''}
  end
end

for key, members in pairs(zrem) do
  redis.call('ZREM', key, unpack(members))
end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
