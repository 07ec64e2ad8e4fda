-- spec/priority/lifecycle.yaml entities.task.transitions.replay
-- An administrator gives it all its tries again.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_waiting.high       queue:high
-- once key index_waiting.medium     queue:medium
-- once key index_waiting.low        queue:low
-- once key known                    queue:capabilities
-- once key version                  queue:capabilities:version
-- once key idle                     queue:idle
-- once key rings                    queue:idle:rings
-- once key bell                     queue:wake
-- once key index_dead               queue:dlq
-- once key index_listed.dead_letter tasks:status:dead_letter
-- once key index_listed.queued      tasks:status:queued
-- once key outbox                   history:outbox
-- each key hash                     tasks:{task_id}
-- each key part_waiting.high        queue:high:cap:{signature}
-- each key part_waiting.medium      queue:medium:cap:{signature}
-- each key part_waiting.low         queue:low:cap:{signature}
-- once argument actor
-- once argument way
-- each argument key
-- each argument believed..signature
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 12, 4
local ARGV_ONCE, ARGV_EACH = 2, 2
local known = KEYS[4]
local version = KEYS[5]
local idle = KEYS[6]
local rings = KEYS[7]
local bell = KEYS[8]
local index_dead = KEYS[9]
local outbox = KEYS[12]
local index_waiting = {high = KEYS[1], medium = KEYS[2], low = KEYS[3]}
local index_listed = {dead_letter = KEYS[10], queued = KEYS[11]}
local part_waiting = {high = 2, medium = 3, low = 4}
local to_queued = {from = 'dead_letter', to = 'queued', columns = '["key","sequence","owner","fence","trace"]'}
local actor = ARGV[1]
local way = ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local DONE, SAME, NONE, STATE, LOST = 'done', 'same', 'none', 'state', 'lost'
local EARLY, AGAIN, HOLDS, WAY = 'early', 'again', 'holds', 'way'

-- Whole numbers as texts. Those of one call are few, and writing one takes longer than looking it up.
local texts = {}

local function text(number)
  local found = texts[number]
  if not found then
    found = string.format('%.0f', number)
    texts[number] = found
  end
  return found
end

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

local function keep(fields, gone, name, value, was)
  if value then
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  elseif was then
    gone[#gone + 1] = name
  end
end

-- Changes of a kind go into the outbox together, unless they are too large for one entry.
local told, LARGE = {}, 1000000

local function write_down(kind)
  redis.call('XADD', outbox, '*', 'entity', 'task', 'from', kind.from, 'to', kind.to, 'at', stamp, 'actor',
      actor, 'columns', kind.columns, 'rows', '[' .. table.concat(kind.rows, ',') .. ']')
  kind.rows, kind.size = {}, 0
end

local function tell(kind, change)
  local row = cjson.encode(change)
  if not kind.rows then
    kind.rows, kind.size = {}, 0
    told[#told + 1] = kind
  elseif kind.size + #row > LARGE then
    write_down(kind)
  end
  kind.rows[#kind.rows + 1] = row
  kind.size = kind.size + #row
end

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local believed__signature = ARGV[a + 2]
  local row = redis.call('HMGET', hash, 'status', 'assigned_worker_id', 'attempt', 'trace_id', 'priority',
      'base_timeout_seconds', '.signature', 'required_capabilities', 'changes', '.given')
  local was_status, was_assigned_worker_id, was_attempt, was_trace_id, was_priority, was_base_timeout_seconds,
      was__signature, was_required_capabilities, was_changes, given = unpack(row)
  -- What nobody has written since then is as it was created.
  given = given and cjson.decode(given) or {}
  was_attempt = was_attempt or given['attempt']
  was_trace_id = was_trace_id or given['trace_id']
  was_priority = was_priority or given['priority']
  was_base_timeout_seconds = was_base_timeout_seconds or given['base_timeout_seconds']
  was_required_capabilities = was_required_capabilities or given['required_capabilities']

  if way ~= 'plain' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif was_status ~= 'dead_letter' then
    answers[n] = {STATE, was_status}
  elseif believed__signature ~= (was__signature or '') then
    answers[n] = {AGAIN, was_status}
  else
    seen[hash] = true
    put(zadd, index_waiting[was_priority], stamp, key)
    put(zadd, KEYS[k + part_waiting[was_priority]], stamp, key)
    parts[KEYS[k + part_waiting[was_priority]]] = {was__signature, was_required_capabilities, key = key}
    put(zrem, index_dead, key)
    put(zrem, index_listed.dead_letter, key)
    put(zadd, index_listed.queued, stamp, key)
    local sequence = text((was_changes or 0) + 1)
    local fields, gone = {'changes', sequence, 'status', 'queued', 'effective_priority', was_priority,
        'queued_at', stamp, 'updated_at', stamp, 'retry_count', '0'}, {'error', 'retriable', 'dead_reason',
        'assigned_worker_id', 'started_at', 'completed_at', 'available_at'}
    keep(fields, gone, 'timeout_seconds', was_base_timeout_seconds, true)
    if #gone > 0 then redis.call('HDEL', hash, unpack(gone)) end
    if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end
    tell(to_queued, {key, sequence, was_assigned_worker_id or '', was_attempt or '0', was_trace_id or ''})
    answers[n] = {DONE, 'queued', was_assigned_worker_id or '', was_attempt or '', was_trace_id or ''}
  end
end

for _, kind in ipairs(told) do
  write_down(kind)
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
if news then
  redis.call('DEL', idle)
  redis.call('PUBLISH', bell, redis.call('INCR', rings) .. ' ' .. news)

end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
