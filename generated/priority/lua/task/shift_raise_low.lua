-- spec/priority/lifecycle.yaml entities.task.shifts.raise_low
-- A task of low priority has waited for long.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_waiting.low    queue:low
-- once key index_waiting.medium queue:medium
-- once key known                queue:capabilities
-- once key version              queue:capabilities:version
-- once key idle                 queue:idle
-- once key rings                queue:idle:rings
-- once key bell                 queue:wake
-- once key metrics              metrics
-- each key hash                 tasks:{task_id}
-- each key part_waiting.high    queue:high:cap:{signature}
-- each key part_waiting.medium  queue:medium:cap:{signature}
-- each key part_waiting.low     queue:low:cap:{signature}
-- once argument actor
-- once argument way
-- once argument LOW_TO_MEDIUM_SECONDS
-- each argument key
-- each argument believed..signature
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 8, 4
local ARGV_ONCE, ARGV_EACH = 3, 2
local known = KEYS[3]
local version = KEYS[4]
local idle = KEYS[5]
local rings = KEYS[6]
local bell = KEYS[7]
local metrics = KEYS[8]
local index_waiting = {low = KEYS[1], medium = KEYS[2]}
local part_waiting = {high = 2, medium = 3, low = 4}
local actor = ARGV[1]
local way = ARGV[2]
local LOW_TO_MEDIUM_SECONDS = tonumber(ARGV[3])
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

-- Whatever of these is empty now is news for those who wait.
local parts = {}

local counts = {}

local function count(name, by)
  counts[name] = (counts[name] or 0) + by
end

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local believed__signature = ARGV[a + 2]
  local row = redis.call('HMGET', hash, 'status', 'assigned_worker_id', 'attempt', 'trace_id', 'queued_at',
      'available_at', '.signature', 'required_capabilities', 'effective_priority', '.given')
  local was_status, was_assigned_worker_id, was_attempt, was_trace_id, was_queued_at, was_available_at,
      was__signature, was_required_capabilities, was_effective_priority, given = unpack(row)
  -- What nobody has written since then is as it was created.
  given = given and cjson.decode(given) or {}
  was_attempt = was_attempt or given['attempt']
  was_trace_id = was_trace_id or given['trace_id']
  was_required_capabilities = was_required_capabilities or given['required_capabilities']
  was_effective_priority = was_effective_priority or given['effective_priority']

  if way ~= 'due' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif was_status ~= 'queued' then
    answers[n] = {STATE, was_status}
  elseif was_effective_priority ~= 'low' then
    answers[n] = {STATE, was_status}
  elseif way == 'due' and not (was_queued_at and tonumber(was_queued_at) + LOW_TO_MEDIUM_SECONDS * 1000000 <= now) then
    answers[n] = {EARLY, was_status}
  elseif believed__signature ~= (was__signature or '') then
    answers[n] = {AGAIN, was_status}
  else
    seen[hash] = true
    if not was_available_at then put(zrem, index_waiting.low, key) end
    if not was_available_at then put(zrem, KEYS[k + part_waiting.low], key) end
    if not was_available_at then put(zadd, index_waiting.medium, was_queued_at, key) end
    if not was_available_at then put(zadd, KEYS[k + part_waiting.medium], was_queued_at, key) end
    if not was_available_at then parts[KEYS[k + part_waiting.medium]] = {was__signature,
        was_required_capabilities, key = key} end
    redis.call('HSET', hash, 'effective_priority', 'medium')
    count('tasks_promoted_total|low|medium', 1)
    answers[n] = {DONE, 'queued', was_assigned_worker_id or '', was_attempt or '', was_trace_id or '',
        string.format('%.0f', now - (was_queued_at or now))}
  end
end

for key, members in pairs(zrem) do
  redis.call('ZREM', key, unpack(members))
end
local news = false
for key, texts in pairs(parts) do
  if redis.call('EXISTS', key) == 0 then
    news = texts.key
    if redis.call('HSETNX', known, texts[1], texts[2]) == 1 then
      redis.call('INCR', version)
    end
  end
end
for key, members in pairs(zadd) do
  redis.call('ZADD', key, unpack(members))
end
for name, by in pairs(counts) do
  redis.call('HINCRBY', metrics, name, by)
end
if news then
  redis.call('DEL', idle)
  redis.call('PUBLISH', bell, redis.call('INCR', rings) .. ' ' .. news)

end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
