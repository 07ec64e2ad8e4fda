-- spec/priority/lifecycle.yaml entities.task.create
-- A client submits a task under a key that is new, or under none.
-- Generated from it (sha256:5bc095b3d325514a). Do not edit; run `nox -s generate`.
--
-- once key clock               clock:task
-- once key known               queue:capabilities
-- once key version             queue:capabilities:version
-- once key bell                queue:wake
-- once key index_listed.queued tasks:status:queued
-- once key outbox              history:outbox
-- each key hash                tasks:{task_id}
-- each key index_waiting       queue:{effective_priority}
-- each key part_waiting        queue:{effective_priority}:cap:{signature}
-- once argument actor
-- each argument key
-- each argument fields
-- each argument believed.signature
-- each argument new.required_capabilities
-- each argument new.trace_id
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 6, 3
local ARGV_ONCE, ARGV_EACH = 1, 5
local clock = KEYS[1]
local known = KEYS[2]
local version = KEYS[3]
local bell = KEYS[4]
local outbox = KEYS[6]
local index_listed = {queued = KEYS[5]}
local actor = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local k, a = KEYS_ONCE, ARGV_ONCE
local hash = KEYS[k + 1]
local index_waiting = KEYS[k + 2]
local part_waiting = KEYS[k + 3]
local key = ARGV[a + 1]
local fields = ARGV[a + 2]
local believed_signature = ARGV[a + 3]
local new_required_capabilities = ARGV[a + 4]
local new_trace_id = ARGV[a + 5]
if redis.call('EXISTS', hash) == 1 then
  return '[["own"]]'
end
-- No two are created at the same moment, so that whoever came first is first.
local latest = redis.call('SET', clock, stamp, 'GET')
if latest and tonumber(latest) >= now then
  now = latest + 1
  stamp = string.format('%.0f', now)
  redis.call('SET', clock, stamp)
end
redis.call('ZADD', index_waiting, stamp, key)
redis.call('ZADD', part_waiting, stamp, key)
if redis.call('ZCARD', part_waiting) == 1 then
  if redis.call('HSETNX', known, believed_signature, new_required_capabilities) == 1 then
    redis.call('INCR', version)
  end
  redis.call('PUBLISH', bell, key)
end
redis.call('ZADD', index_listed.queued, stamp, key)
local sequence = '1'
redis.call('HSET', hash, 'changes', '1', 'status', 'queued', 'created_at', stamp, 'queued_at', stamp,
    'updated_at', stamp, '.signature', believed_signature, '.given', fields)
redis.call('XADD', outbox, '*', 'entity', 'task', 'key', key, 'sequence', sequence, 'to', 'queued', 'at',
    stamp, 'actor', actor, 'trace', new_trace_id)

-- One text, because every table would be sent by itself; it is too short for an encoder to pay.
return '[["done","queued",' .. redis.call('ZCARD', index_waiting) .. ',"' .. stamp .. '"]]'
