-- spec/priority/lifecycle.yaml entities.task.create
-- A client submits a task under a key that is new, or under none.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key clock                  clock:task
-- once key known                  queue:capabilities
-- once key version                queue:capabilities:version
-- once key index_listed.queued    tasks:status:queued
-- once key outbox                 history:outbox
-- once key idle                   queue:idle
-- once key rings                  queue:idle:rings
-- once key bell                   queue:wake
-- once key index_running          executing:deadlines
-- once key index_listed.executing tasks:status:executing
-- each key hash                   tasks:{task_id}
-- each key index_waiting          queue:{effective_priority}
-- each key part_waiting           queue:{effective_priority}:cap:{signature}
-- each key index_booked           worker_tasks:{owner}
-- each key holder                 workers:{owner}
-- once argument actor
-- each argument key
-- each argument fields
-- each argument believed..signature
-- each argument new.required_capabilities
-- each argument new.trace_id
-- each argument believed.owner
-- each argument new.timeout_seconds
-- each argument new.attempt
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 10, 5
local ARGV_ONCE, ARGV_EACH = 1, 8
local clock = KEYS[1]
local known = KEYS[2]
local version = KEYS[3]
local outbox = KEYS[5]
local idle = KEYS[6]
local rings = KEYS[7]
local bell = KEYS[8]
local index_running = KEYS[9]
local index_listed = {queued = KEYS[4], executing = KEYS[10]}
local actor = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

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

local k, a = KEYS_ONCE, ARGV_ONCE
local hash = KEYS[k + 1]
local index_waiting = KEYS[k + 2]
local part_waiting = KEYS[k + 3]
local index_booked = KEYS[k + 4]
local holder = KEYS[k + 5]
local key = ARGV[a + 1]
local fields = ARGV[a + 2]
local believed__signature = ARGV[a + 3]
local new_required_capabilities = ARGV[a + 4]
local new_trace_id = ARGV[a + 5]
local believed_owner = ARGV[a + 6]
local new_timeout_seconds = ARGV[a + 7]
local new_attempt = ARGV[a + 8]
-- Mostly neither it nor any that waits is there.
local there = redis.call('EXISTS', hash, part_waiting)
local news = there == 0
if there > 0 and redis.call('EXISTS', hash) == 1 then
  return '[["own"]]'
end
local waits = news and redis.call('HGET', idle, believed_owner)
local handed = false
if waits then
  -- The one whom the creator has named gets it at once, unless anything stands in the way.
  local owner = believed_owner
  local channel, taker, fits, offered = string.match(waits, '^(%S+) (%S+)( .- )|(.*)$')
  local status, capacity, offers = unpack(redis.call('HMGET', holder, 'status', 'capacity', 'capabilities'))
  handed = (status == 'active') and (offers or '') == offered
  handed = handed and string.find(fits, ' ' .. believed__signature .. ' ', 1, true)
  handed = handed and capacity - redis.call('SCARD', index_booked) > 0
  if handed then
    -- A server without memory refuses this, before anybody is told.
    local ends = text(now + ((new_timeout_seconds ~= '' and new_timeout_seconds or nil) or 0) * 1000000)
    local fence = text(new_attempt + 1)
    redis.call('HSET', hash, 'changes', '2', 'status', 'executing', 'created_at', stamp, 'queued_at', stamp,
        'updated_at', stamp, 'assigned_worker_id', owner, 'deadline_at', ends, 'attempt', fence, 'started_at',
        stamp, '.signature', believed__signature, '.given', fields)
    handed = redis.call('PUBLISH', channel,
        owner .. '\n{"changes":"2","status":"executing","created_at":"' .. stamp .. '","queued_at":"' .. stamp .. '","updated_at":"' .. stamp .. '","deadline_at":"' .. ends .. '","attempt":"' .. fence .. '","started_at":"' .. stamp .. '",".given":' .. fields .. '}') > 0
    if handed then
      redis.call('HDEL', idle, owner)
      redis.call('ZADD', index_running, ends, key)
      redis.call('SADD', index_booked, key)
      redis.call('ZADD', index_listed.executing, stamp, key)
      local sequence = '1'
      redis.call('XADD', outbox, '*', 'entity', 'task', 'key', key, 'sequence', sequence, 'to', 'queued',
          'at', stamp, 'actor', actor, 'trace', new_trace_id)
      redis.call('XADD', outbox, '*', 'entity', 'task', 'key', key, 'sequence', '2', 'from', 'queued', 'to',
          'executing', 'at', stamp, 'actor', taker, 'owner', owner, 'fence', fence, 'trace', new_trace_id)
    else
      -- Nobody listens there any more.
      redis.call('DEL', hash)
    end
  end
end
if not handed then
  -- No two are created at the same moment, so that whoever came first is first.
  local latest = redis.call('SET', clock, stamp, 'GET')
  if latest and tonumber(latest) >= now then
    now = latest + 1
    stamp = string.format('%.0f', now)
    redis.call('SET', clock, stamp)
  end
  redis.call('ZADD', index_waiting, stamp, key)
  redis.call('ZADD', part_waiting, stamp, key)
  if news then
    if redis.call('HSETNX', known, believed__signature, new_required_capabilities) == 1 then
      redis.call('INCR', version)
    end
  end
  redis.call('ZADD', index_listed.queued, stamp, key)
  local sequence = '1'
  redis.call('HSET', hash, 'changes', '1', 'status', 'queued', 'created_at', stamp, 'queued_at', stamp,
      'updated_at', stamp, '.signature', believed__signature, '.given', fields)
  redis.call('XADD', outbox, '*', 'entity', 'task', 'key', key, 'sequence', sequence, 'to', 'queued', 'at',
      stamp, 'actor', actor, 'trace', new_trace_id)
end
local hint
if news then
  hint = redis.call('HRANDFIELD', idle)
  if not handed then
    redis.call('DEL', idle)
    redis.call('PUBLISH', bell, redis.call('INCR', rings) .. ' ' .. key)

  end
end

-- One text, because every table would be sent by itself; it is too short for an encoder to pay.
local place = handed and '1' or redis.call('ZCARD', index_waiting)
return '[["done","queued",' .. place .. ',"' .. stamp .. '"' .. (hint and ',' .. cjson.encode(hint) or '') .. ']]'
