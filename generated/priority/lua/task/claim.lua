-- spec/priority/lifecycle.yaml entities.task.transitions.claim
-- A worker that can run the task takes it.
-- Generated from it (sha256:6418978cf4e9c4f8). Do not edit; run `nox -s generate`.
--
-- once key index_waiting.high     queue:high
-- once key index_waiting.medium   queue:medium
-- once key index_waiting.low      queue:low
-- once key index_delayed          queue:delayed
-- once key index_running          executing:deadlines
-- once key index_booked           worker_tasks:{owner}
-- once key index_listed.queued    tasks:status:queued
-- once key index_listed.executing tasks:status:executing
-- once key outbox                 history:outbox
-- once key paused                 queue:paused
-- once key holder                 workers:{owner}
-- each key hash                   tasks:{task_id}
-- each key part_waiting           queue:{effective_priority}:cap:{signature}
-- once argument actor
-- once argument owner
-- once argument most
-- each argument key
-- each argument believed.effective_priority
-- each argument believed.signature

local KEYS_ONCE, KEYS_EACH = 11, 2
local ARGV_ONCE, ARGV_EACH = 3, 3
local index_delayed = KEYS[4]
local index_running = KEYS[5]
local index_booked = KEYS[6]
local outbox = KEYS[9]
local paused = KEYS[10]
local holder = KEYS[11]
local index_waiting = {high = KEYS[1], medium = KEYS[2], low = KEYS[3]}
local index_listed = {queued = KEYS[7], executing = KEYS[8]}
local actor = ARGV[1]
local owner = ARGV[2]
local most = ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local DONE, NONE, STATE, MISSED, FULL, PAUSED = 'done', 'none', 'state', 'missed', 'full', 'paused'
-- Indexes are written at the end, each in one command for all entities.
local zrem, srem, zadd, sadd = {}, {}, {}, {}

local function put(lists, key, first, second)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  list[#list + 1] = first
  list[#list + 1] = second
end

local free = tonumber(most)
local status, capacity = unpack(redis.call('HMGET', holder, 'status', 'capacity'))
if status ~= 'active' then
  free = 0
else
  free = math.min(free, capacity - redis.call('SCARD', index_booked))
end
local resting = {}
for _, word in ipairs(redis.call('SMEMBERS', paused)) do
  resting[word] = true
end
local answers, taken = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local part_waiting = KEYS[k + 2]
  local key = ARGV[a + 1]
  local believed_effective_priority = ARGV[a + 2]
  local believed_signature = ARGV[a + 3]
  local index = index_waiting[believed_effective_priority]
  if free < 1 then
    answers[n] = {FULL}
  elseif resting[believed_effective_priority] then
    answers[n] = {PAUSED}
  elseif taken[key] or not redis.call('ZSCORE', index, key) then
    answers[n] = {MISSED}
    redis.call('ZREM', part_waiting, key)
  else
    local row, was = redis.call('HGETALL', hash), {}
    for i = 1, #row, 2 do
      was[row[i]] = row[i + 1]
    end
    local was_status, was_effective_priority, was_signature, was_timeout_seconds, was_attempt,
        was_available_at, was_changes, was_trace_id = was['status'], was['effective_priority'],
        was['.signature'], was['timeout_seconds'], was['attempt'], was['available_at'], was['changes'],
        was['trace_id']
    if was_status ~= 'queued' then
      -- Whatever the index says, this one is not to be had.
      redis.call('ZREM', index, key)
      redis.call('ZREM', part_waiting, key)
      answers[n] = {was_status and STATE or NONE}
    elseif was_effective_priority ~= believed_effective_priority or was_signature ~= believed_signature then
      answers[n] = {MISSED}
    else
      local ends = string.format('%.0f', now + (was_timeout_seconds or 0) * 1000000)
      local fence = string.format('%.0f', was_attempt + 1)
      if not was_available_at then put(zrem, index_waiting[was_effective_priority], key) end
      if not was_available_at then put(zrem, part_waiting, key) end
      if was_available_at then put(zrem, index_delayed, key) end
      put(zadd, index_running, ends, key)
      put(sadd, index_booked, key)
      put(zrem, index_listed.queued, key)
      put(zadd, index_listed.executing, stamp, key)
      local sequence = string.format('%.0f', (was_changes or 0) + 1)
      redis.call('HSET', hash, 'changes', sequence, 'status', 'executing', 'assigned_worker_id', owner,
          'deadline_at', ends, 'attempt', fence, 'started_at', stamp, 'updated_at', stamp)
      redis.call('XADD', outbox, '*', 'entity', 'task', 'key', key, 'sequence', sequence, 'from', 'queued',
          'to', 'executing', 'at', stamp, 'actor', actor, 'owner', owner, 'fence', fence, 'reason', '',
          'trace', was_trace_id or '')
      row = {was['task_id'] or false, was['task_type'] or false, was['priority'] or false,
          was['effective_priority'] or false, was['parameters'] or false,
          was['required_capabilities'] or false, 'executing', was['retry_count'] or false,
          was['max_retries'] or false, was['timeout_seconds'] or false, was['base_timeout_seconds'] or false,
          was['created_at'] or false, was['queued_at'] or false, stamp, stamp, was['completed_at'] or false,
          was['available_at'] or false, ends, owner, fence, was['result'] or false, was['error'] or false,
          was['retriable'] or false, was['dead_reason'] or false, was['idempotency_key'] or false,
          was['digest'] or false, was['trace_id'] or false, was['progress'] or false, sequence}
      answers[n] = {DONE, 'executing', row}
      taken[key] = true
      free = free - 1
    end
  end
end

for key, members in pairs(zrem) do
  redis.call('ZREM', key, unpack(members))
end
for key, members in pairs(zadd) do
  redis.call('ZADD', key, unpack(members))
end
for key, members in pairs(sadd) do
  redis.call('SADD', key, unpack(members))
end

return answers
