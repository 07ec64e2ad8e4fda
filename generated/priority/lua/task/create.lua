-- spec/priority/lifecycle.yaml entities.task.create
-- A client submits a task under a key that is new, or under none.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key clock                  clock:task
-- once key index_waiting.high     queue:high
-- once key index_waiting.medium   queue:medium
-- once key index_waiting.low      queue:low
-- once key known                  queue:capabilities
-- once key version                queue:capabilities:version
-- once key idle                   queue:idle
-- once key rings                  queue:idle:rings
-- once key bell                   queue:wake
-- once key index_delayed          queue:delayed
-- once key index_listed.queued    tasks:status:queued
-- once key outbox                 history:outbox
-- each key hash                   tasks:{task_id}
-- each key unique_idempotency_key idempotent:{idempotency_key}
-- each key part_waiting           queue:{effective_priority}:cap:{signature}
-- once argument actor
-- once argument IDEMPOTENCY_TTL_SECONDS
-- once argument MAX_QUEUE_DEPTH
-- each argument key
-- each argument fields
-- each argument new.idempotency_key
-- each argument new.available_at
-- each argument new.effective_priority
-- each argument believed..signature
-- each argument new.required_capabilities
-- each argument apart
-- each argument new.trace_id
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 12, 3
local ARGV_ONCE, ARGV_EACH = 3, 9
local clock = KEYS[1]
local known = KEYS[5]
local version = KEYS[6]
local idle = KEYS[7]
local rings = KEYS[8]
local bell = KEYS[9]
local index_delayed = KEYS[10]
local outbox = KEYS[12]
local index_waiting = {high = KEYS[2], medium = KEYS[3], low = KEYS[4]}
local index_listed = {queued = KEYS[11]}
local actor = ARGV[1]
local IDEMPOTENCY_TTL_SECONDS = tonumber(ARGV[2])
local MAX_QUEUE_DEPTH = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local DONE, OWN, FOUND, FULL = 'done', 'own', 'found', 'full'

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

-- No two are created at the same moment, so that whoever came first is first.
local latest, stamp = tonumber(redis.call('GET', clock) or 0), nil
local depth, total = {}, 0
if MAX_QUEUE_DEPTH > 0 then
  for word, index in pairs(index_waiting) do
    depth[word] = redis.call('ZCARD', index)
    total = total + depth[word]
  end
end
local answers = {}

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local unique_idempotency_key = KEYS[k + 2]
  local part_waiting = KEYS[k + 3]
  local key = ARGV[a + 1]
  local fields = ARGV[a + 2]
  local new_idempotency_key = ARGV[a + 3]
  local new_available_at = ARGV[a + 4]
  local new_effective_priority = ARGV[a + 5]
  local believed__signature = ARGV[a + 6]
  local new_required_capabilities = ARGV[a + 7]
  local apart = ARGV[a + 8]
  local new_trace_id = ARGV[a + 9]
  local found_idempotency_key = new_idempotency_key ~= '' and redis.call('GET', unique_idempotency_key)
  if redis.call('EXISTS', hash) == 1 then
    answers[n] = {OWN}
  elseif found_idempotency_key then
    answers[n] = {FOUND, found_idempotency_key, 'idempotency_key'}
  elseif MAX_QUEUE_DEPTH > 0 and total >= MAX_QUEUE_DEPTH then
    answers[n] = {FULL}
  else
    now = math.max(now, latest + 1)
    latest = now
    stamp = string.format('%.0f', now)
    if new_idempotency_key ~= '' then redis.call('SET', unique_idempotency_key, key, 'PX',
        math.ceil(IDEMPOTENCY_TTL_SECONDS * 1000)) end
    local place
    local available_at_if_set = new_available_at ~= '' and new_available_at or nil
    if available_at_if_set and tonumber(available_at_if_set) <= now then available_at_if_set = nil end
    if not available_at_if_set then put(zadd, index_waiting[new_effective_priority], stamp, key) end
    if not available_at_if_set then put(zadd, part_waiting, stamp, key) end
    if not available_at_if_set then parts[part_waiting] = {believed__signature, new_required_capabilities,
        key = key} end
    if available_at_if_set then put(zadd, index_delayed, available_at_if_set, key) end
    put(zadd, index_listed.queued, stamp, key)
    local sequence = '1'
    redis.call('HSET', hash, 'changes', '1', 'status', 'queued', 'created_at', stamp, 'queued_at', stamp,
        'updated_at', stamp, '.signature', believed__signature, '.given', fields)
    if apart ~= '' then redis.call('HSET', hash, unpack(cjson.decode(apart))) end
    if available_at_if_set then redis.call('HSET', hash, 'available_at', available_at_if_set) end
    redis.call('XADD', outbox, '*', 'entity', 'task', 'key', key, 'sequence', sequence, 'to', 'queued', 'at',
        stamp, 'actor', actor, 'trace', new_trace_id)
    if not available_at_if_set then
      total = total + 1
      local index = index_waiting[new_effective_priority]
      place = (depth[new_effective_priority] or redis.call('ZCARD', index)) + 1
      depth[new_effective_priority] = place
    end
    answers[n] = {DONE, 'queued', place or cjson.null, stamp}
  end
end

if stamp then
  redis.call('SET', clock, stamp)
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
if news then
  redis.call('DEL', idle)
  redis.call('PUBLISH', bell, redis.call('INCR', rings) .. ' ' .. news)

end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
