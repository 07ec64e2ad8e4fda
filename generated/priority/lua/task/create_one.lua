-- spec/priority/lifecycle.yaml entities.task.create
-- A client submits a task under a key that is new, or under none.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key clock               clock:task
-- once key known               queue:capabilities
-- once key version             queue:capabilities:version
-- once key index_listed.queued tasks:status:queued
-- once key outbox              history:outbox
-- once key idle                queue:idle
-- once key rings               queue:idle:rings
-- once key bell                queue:wake
-- each key hash                tasks:{task_id}
-- each key index_waiting       queue:{effective_priority}
-- each key part_waiting        queue:{effective_priority}:cap:{signature}
-- once argument actor
-- each argument key
-- each argument fields
-- each argument believed..signature
-- each argument new.required_capabilities
-- each argument new.trace_id
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 8, 3
local ARGV_ONCE, ARGV_EACH = 1, 5
local clock = KEYS[1]
local known = KEYS[2]
local version = KEYS[3]
local outbox = KEYS[5]
local idle = KEYS[6]
local rings = KEYS[7]
local bell = KEYS[8]
local index_listed = {queued = KEYS[4]}
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
local believed__signature = ARGV[a + 3]
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
local news = redis.call('EXISTS', part_waiting) == 0
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
local hint
if news then
  hint = redis.call('HRANDFIELD', idle)
  -- All that wait have to look now: this comes before whatever is created next.
  redis.call('DEL', idle)
  redis.call('PUBLISH', bell, redis.call('INCR', rings) .. ' ' .. key)

end

-- One text, because every table would be sent by itself; it is too short for an encoder to pay.
local place = redis.call('ZCARD', index_waiting)
return '[["done","queued",' .. place .. ',"' .. stamp .. '"' .. (hint and ',' .. cjson.encode(hint) or '') .. ']]'
