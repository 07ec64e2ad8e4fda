-- spec/priority/lifecycle.yaml entities.task.transitions.retry
-- The run failed, ran out of time, or its worker died; it has another try.
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
-- once key index_delayed            queue:delayed
-- once key index_running            executing:deadlines
-- once key index_listed.executing   tasks:status:executing
-- once key index_listed.queued      tasks:status:queued
-- once key outbox                   history:outbox
-- once key metrics                  metrics
-- once key index_dead               queue:dlq
-- once key index_listed.dead_letter tasks:status:dead_letter
-- each key hash                     tasks:{task_id}
-- each key part_waiting.high        queue:high:cap:{signature}
-- each key part_waiting.medium      queue:medium:cap:{signature}
-- each key part_waiting.low         queue:low:cap:{signature}
-- each key index_booked             worker_tasks:{assigned_worker_id}
-- each key taken                    worker_stops:{assigned_worker_id}
-- each key holder                   workers:{assigned_worker_id}
-- once argument actor
-- once argument way
-- once argument MAX_TIMEOUT_SECONDS
-- once argument RETRY_BACKOFF_SECONDS
-- once argument RETRY_BACKOFF_MAX_SECONDS
-- once argument TASK_RETENTION_SECONDS
-- each argument key
-- each argument take.error
-- each argument take.retriable
-- each argument believed..signature
-- each argument believed.assigned_worker_id
-- each argument take.reason
-- each argument final
-- each argument fence
-- answers JSON
-- cut take.error 2000

local KEYS_ONCE, KEYS_EACH = 16, 7
local ARGV_ONCE, ARGV_EACH = 6, 8
local known = KEYS[4]
local version = KEYS[5]
local idle = KEYS[6]
local rings = KEYS[7]
local bell = KEYS[8]
local index_delayed = KEYS[9]
local index_running = KEYS[10]
local outbox = KEYS[13]
local metrics = KEYS[14]
local index_dead = KEYS[15]
local index_waiting = {high = KEYS[1], medium = KEYS[2], low = KEYS[3]}
local index_listed = {executing = KEYS[11], queued = KEYS[12], dead_letter = KEYS[16]}
local part_waiting = {high = 2, medium = 3, low = 4}
local to_queued = {from = 'executing', to = 'queued', columns = '["key","sequence","owner","fence","reason","trace"]'}
local to_dead_letter = {from = 'executing', to = 'dead_letter', columns = '["key","sequence","owner","fence","reason","trace","record"]'}
local task_duration_seconds_bounds = {0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400}
local actor = ARGV[1]
local way = ARGV[2]
local MAX_TIMEOUT_SECONDS = tonumber(ARGV[3])
local RETRY_BACKOFF_SECONDS = tonumber(ARGV[4])
local RETRY_BACKOFF_MAX_SECONDS = tonumber(ARGV[5])
local TASK_RETENTION_SECONDS = tonumber(ARGV[6])
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

local counts = {}

local function count(name, by)
  counts[name] = (counts[name] or 0) + by
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

local recent = {}

local function recently(name)
  recent[name] = (recent[name] or 0) + 1
end

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local index_booked = KEYS[k + 5]
  local taken = KEYS[k + 6]
  local holder = KEYS[k + 7]
  local key = ARGV[a + 1]
  local take_error = ARGV[a + 2]
  local take_retriable = ARGV[a + 3]
  local believed__signature = ARGV[a + 4]
  local believed_assigned_worker_id = ARGV[a + 5]
  local take_reason = ARGV[a + 6]
  local final = ARGV[a + 7]
  local fence = ARGV[a + 8]
  local row = redis.call('HMGET', hash, 'status', 'assigned_worker_id', 'attempt', 'trace_id', 'priority',
      'retry_count', 'timeout_seconds', 'queued_at', '.signature', 'required_capabilities', 'changes',
      'max_retries', 'created_at', '.settled', 'deadline_at', '.given')
  local was_status, was_assigned_worker_id, was_attempt, was_trace_id, was_priority, was_retry_count,
      was_timeout_seconds, was_queued_at, was__signature, was_required_capabilities, was_changes,
      was_max_retries, was_created_at, was__settled, was_deadline_at, given = unpack(row)
  -- What nobody has written since then is as it was created.
  given = given and cjson.decode(given) or {}
  was_attempt = was_attempt or given['attempt']
  was_trace_id = was_trace_id or given['trace_id']
  was_priority = was_priority or given['priority']
  was_retry_count = was_retry_count or given['retry_count']
  was_timeout_seconds = was_timeout_seconds or given['timeout_seconds']
  was_required_capabilities = was_required_capabilities or given['required_capabilities']
  was_max_retries = was_max_retries or given['max_retries']

  if way ~= 'held' and way ~= 'due' and way ~= 'holder' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif way == 'held' and was_attempt == fence and was__settled == 'retry ' .. believed_assigned_worker_id .. ' ' .. fence then
    answers[n] = {SAME, was_status}
  elseif way == 'held' and (was_status ~= 'executing' or was_assigned_worker_id ~= believed_assigned_worker_id or was_attempt ~= fence) then
    answers[n] = {LOST, was_status}
  elseif was_status ~= 'executing' then
    answers[n] = {STATE, was_status}
  elseif way == 'due' and not (was_deadline_at and tonumber(was_deadline_at) <= now) then
    answers[n] = {EARLY, was_status}
  elseif way == 'holder' and (redis.call('HGET', holder, 'status') or 'dead') ~= 'dead' then
    answers[n] = {EARLY, was_status}
  elseif believed__signature ~= (was__signature or '') then
    answers[n] = {AGAIN, was_status}
  elseif believed_assigned_worker_id ~= (was_assigned_worker_id or '') then
    answers[n] = {AGAIN, was_status}
  else
    seen[hash] = true
    local mark = way == 'held' and 'retry ' .. believed_assigned_worker_id .. ' ' .. fence or ''
    if final == '1' or tonumber(was_retry_count or 0) >= tonumber(was_max_retries or 0) then
      local new_error = take_error ~= '' and take_error or nil
      local new_retriable = take_retriable ~= '' and take_retriable or nil
      put(zrem, index_running, key)
      put(srem, index_booked, key)
      put(zadd, index_dead, stamp, key)
      put(zrem, index_listed.executing, key)
      put(zadd, index_listed.dead_letter, stamp, key)
      local sequence = text((was_changes or 0) + 1)
      local fields, gone = {'changes', sequence, 'status', 'dead_letter', 'completed_at', stamp, 'updated_at',
          stamp, 'dead_reason', 'max_retries_exceeded', '.settled', mark}, {'deadline_at'}
      keep(fields, gone, 'error', new_error, true)
      keep(fields, gone, 'retriable', new_retriable, true)
      if #gone > 0 then redis.call('HDEL', hash, unpack(gone)) end
      if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end
      tell(to_dead_letter, {key, sequence, was_assigned_worker_id or '', was_attempt or '0', take_reason,
          was_trace_id or '', redis.call('HGETALL', hash)})
      observe('task_duration_seconds|' .. was_priority .. '|dead_letter', now - (was_created_at or now),
          task_duration_seconds_bounds)
      count('tasks_failed_total|max_retries_exceeded', 1)
      count('tasks_dlq_total', 1)
      recently('tasks_ended_recently|dead_letter')
      if way ~= 'held' then
        redis.call('SADD', taken, key)
        redis.call('PEXPIRE', taken, math.ceil(TASK_RETENTION_SECONDS * 1000))
      end
      answers[n] = {DONE, 'dead_letter', was_assigned_worker_id or '', was_attempt or '', was_trace_id or ''}
    else
      local new_retry_count = text((was_retry_count or 0) + 1)
      local new_timeout_seconds = text(math.min(math.ceil((was_timeout_seconds or 0) * 1.5),
          MAX_TIMEOUT_SECONDS))
      local wait = math.min(RETRY_BACKOFF_MAX_SECONDS,
          RETRY_BACKOFF_SECONDS * 2 ^ math.min((was_retry_count or 0), 60))
      local new_available_at = wait > 0 and text(now + wait * 1000000) or nil
      local new_error = take_error ~= '' and take_error or nil
      local new_retriable = take_retriable ~= '' and take_retriable or nil
      if not new_available_at then put(zadd, index_waiting[was_priority], was_queued_at, key) end
      if not new_available_at then put(zadd, KEYS[k + part_waiting[was_priority]], was_queued_at, key) end
      if not new_available_at then parts[KEYS[k + part_waiting[was_priority]]] = {was__signature,
          was_required_capabilities, key = key} end
      if new_available_at then put(zadd, index_delayed, new_available_at, key) end
      put(zrem, index_running, key)
      put(srem, index_booked, key)
      put(zrem, index_listed.executing, key)
      put(zadd, index_listed.queued, stamp, key)
      local sequence = text((was_changes or 0) + 1)
      local fields, gone = {'changes', sequence, 'status', 'queued', 'effective_priority', was_priority,
          'retry_count', new_retry_count, 'timeout_seconds', new_timeout_seconds, 'updated_at', stamp,
          '.settled', mark}, {'deadline_at', 'assigned_worker_id', 'started_at'}
      keep(fields, gone, 'available_at', new_available_at, true)
      keep(fields, gone, 'error', new_error, true)
      keep(fields, gone, 'retriable', new_retriable, true)
      if #gone > 0 then redis.call('HDEL', hash, unpack(gone)) end
      if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end
      tell(to_queued, {key, sequence, was_assigned_worker_id or '', was_attempt or '0', take_reason,
          was_trace_id or ''})
      count('task_retries_total|' .. was_priority .. '|' .. take_reason, 1)
      count('tasks_failed_total|' .. take_reason, 1)
      if way ~= 'held' then
        redis.call('SADD', taken, key)
        redis.call('PEXPIRE', taken, math.ceil(TASK_RETENTION_SECONDS * 1000))
      end
      answers[n] = {DONE, 'queued', was_assigned_worker_id or '', was_attempt or '', was_trace_id or ''}
    end
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
for name, seen in pairs(observed) do
  for place = 1, #seen.bounds + 1 do
    if seen[place] then
      redis.call('HINCRBY', metrics, name .. '|le|' .. (seen.bounds[place] or '+Inf'), seen[place])
    end
  end
  redis.call('HINCRBY', metrics, name .. '|sum', seen.sum)
end
-- The last seconds of a count, in a ring: a slot of another second begins anew.
for name, by in pairs(recent) do
  local slot = name .. '|' .. (time[1] % 128)
  local second, before = string.match(redis.call('HGET', metrics, slot) or '', '^(%d+):(%d+)$')
  if second == time[1] then
    by = by + before
  end
  redis.call('HSET', metrics, slot, time[1] .. ':' .. by)
end
if news then
  redis.call('DEL', idle)
  redis.call('PUBLISH', bell, redis.call('INCR', rings) .. ' ' .. news)

end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
