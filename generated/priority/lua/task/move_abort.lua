-- spec/priority/lifecycle.yaml entities.task.transitions.abort
-- A client no longer wants it while a worker runs it.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_running          executing:deadlines
-- once key index_listed.executing tasks:status:executing
-- once key index_listed.cancelled tasks:status:cancelled
-- once key outbox                 history:outbox
-- once key metrics                metrics
-- each key hash                   tasks:{task_id}
-- each key index_booked           worker_tasks:{assigned_worker_id}
-- each key taken                  worker_stops:{assigned_worker_id}
-- once argument actor
-- once argument way
-- once argument TASK_RETENTION_SECONDS
-- each argument key
-- each argument believed.assigned_worker_id
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 5, 3
local ARGV_ONCE, ARGV_EACH = 3, 2
local index_running = KEYS[1]
local outbox = KEYS[4]
local metrics = KEYS[5]
local index_listed = {executing = KEYS[2], cancelled = KEYS[3]}
local to_cancelled = {from = 'executing', to = 'cancelled', columns = '["key","sequence","owner","fence","trace","record"]'}
local task_duration_seconds_bounds = {0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400}
local actor = ARGV[1]
local way = ARGV[2]
local TASK_RETENTION_SECONDS = tonumber(ARGV[3])
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

-- How many waited for so long, by the place of the bound, and how long together.
local observed = {}

local function observe(name, waited, bounds)
  local seen = observed[name]
  if not seen then
    seen = {bounds = bounds, sum = 0}
    observed[name] = seen
  end
  local place = 1
  while bounds[place] and waited > bounds[place] * 1000000 do
    place = place + 1
  end
  seen[place] = (seen[place] or 0) + 1
  seen.sum = seen.sum + waited
end

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local index_booked = KEYS[k + 2]
  local taken = KEYS[k + 3]
  local key = ARGV[a + 1]
  local believed_assigned_worker_id = ARGV[a + 2]
  local row, was = redis.call('HGETALL', hash), {}
  for i = 1, #row, 2 do
    if row[i] == '.given' then
      was = cjson.decode(row[i + 1])
    end
  end
  -- What was written since then counts instead.
  for i = 1, #row, 2 do
    was[row[i]] = row[i + 1]
  end
  was['.given'] = nil
  local was_status, was_assigned_worker_id, was_attempt, was_trace_id, was_changes, was_priority,
      was_created_at = was['status'], was['assigned_worker_id'], was['attempt'], was['trace_id'],
      was['changes'], was['priority'], was['created_at']

  if way ~= 'plain' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif was_status ~= 'executing' then
    answers[n] = {STATE, was_status}
  elseif believed_assigned_worker_id ~= (was_assigned_worker_id or '') then
    answers[n] = {AGAIN, was_status}
  else
    seen[hash] = true
    put(zrem, index_running, key)
    put(srem, index_booked, key)
    put(zrem, index_listed.executing, key)
    put(zadd, index_listed.cancelled, stamp, key)
    local sequence = text((was_changes or 0) + 1)
    local fields, gone = {'changes', sequence, 'status', 'cancelled', 'completed_at', stamp, 'updated_at',
        stamp}, {}
    if was['deadline_at'] then gone[#gone + 1] = 'deadline_at' end
    if #gone > 0 then redis.call('HDEL', hash, unpack(gone)) end
    if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end
    redis.call('PEXPIRE', hash, text(math.ceil(TASK_RETENTION_SECONDS * 1000)))
    was['changes'] = sequence
    was['status'] = 'cancelled'
    was['deadline_at'] = nil
    was['completed_at'] = stamp
    was['updated_at'] = stamp
    tell(to_cancelled, {key, sequence, was_assigned_worker_id or '', was_attempt or '0', was_trace_id or '',
        was})
    observe('task_duration_seconds|' .. was_priority .. '|cancelled', now - (was_created_at or now),
        task_duration_seconds_bounds)
    redis.call('SADD', taken, key)
    redis.call('PEXPIRE', taken, math.ceil(TASK_RETENTION_SECONDS * 1000))
    answers[n] = {DONE, 'cancelled', was_assigned_worker_id or '', was_attempt or '', was_trace_id or ''}
  end
end

for _, kind in ipairs(told) do
  write_down(kind)
end
for key, members in pairs(zrem) do
  redis.call('ZREM', key, unpack(members))
end
for key, members in pairs(srem) do
  redis.call('SREM', key, unpack(members))
end
for key, members in pairs(zadd) do
  redis.call('ZADD', key, unpack(members))
end
for name, seen in pairs(observed) do
  for place = 1, #seen.bounds + 1 do
    if seen[place] then
      redis.call('HINCRBY', metrics, name .. '|le|' .. (seen.bounds[place] or '+Inf'), seen[place])
    end
  end
  redis.call('HINCRBY', metrics, name .. '|sum', seen.sum)
end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
