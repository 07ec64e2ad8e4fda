-- spec/priority/lifecycle.yaml entities.task.shifts.advance
-- The worker tells how far it is.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- each key hash tasks:{task_id}
-- once argument actor
-- once argument way
-- each argument key
-- each argument take.progress
-- each argument believed.assigned_worker_id
-- each argument fence
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 0, 1
local ARGV_ONCE, ARGV_EACH = 2, 4
local actor = ARGV[1]
local way = ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local DONE, SAME, NONE, STATE, LOST = 'done', 'same', 'none', 'state', 'lost'
local EARLY, AGAIN, HOLDS, WAY = 'early', 'again', 'holds', 'way'

local function keep(fields, gone, name, value, was)
  if value then
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  elseif was then
    gone[#gone + 1] = name
  end
end

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local take_progress = ARGV[a + 2]
  local believed_assigned_worker_id = ARGV[a + 3]
  local fence = ARGV[a + 4]
  local row = redis.call('HMGET', hash, 'status', 'assigned_worker_id', 'attempt', 'trace_id', '.given')
  local was_status, was_assigned_worker_id, was_attempt, was_trace_id, given = unpack(row)
  -- What nobody has written since then is as it was created.
  given = given and cjson.decode(given) or {}
  was_attempt = was_attempt or given['attempt']
  was_trace_id = was_trace_id or given['trace_id']

  if way ~= 'held' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif way == 'held' and (was_status ~= 'executing' or was_assigned_worker_id ~= believed_assigned_worker_id or was_attempt ~= fence) then
    answers[n] = {LOST, was_status}
  elseif was_status ~= 'executing' then
    answers[n] = {STATE, was_status}
  elseif believed_assigned_worker_id ~= (was_assigned_worker_id or '') then
    answers[n] = {AGAIN, was_status}
  else
    seen[hash] = true
    local new_progress = take_progress ~= '' and take_progress or nil
    local fields, gone = {}, {}
    keep(fields, gone, 'progress', new_progress, true)
    if #gone > 0 then redis.call('HDEL', hash, unpack(gone)) end
    if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end
    answers[n] = {DONE, 'executing', was_assigned_worker_id or '', was_attempt or '', was_trace_id or ''}
  end
end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
