-- spec/priority/lifecycle.yaml entities.worker.create
-- A worker introduces itself.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key clock               clock:worker
-- once key index_alive         workers:heartbeats
-- once key index_listed.active workers:status:active
-- each key hash                workers:{worker_id}
-- once argument actor
-- each argument key
-- each argument fields
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 3, 1
local ARGV_ONCE, ARGV_EACH = 1, 2
local clock = KEYS[1]
local index_alive = KEYS[2]
local index_listed = {active = KEYS[3]}
local actor = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local k, a = KEYS_ONCE, ARGV_ONCE
local hash = KEYS[k + 1]
local key = ARGV[a + 1]
local fields = ARGV[a + 2]
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
redis.call('ZADD', index_alive, stamp, key)
redis.call('ZADD', index_listed.active, stamp, key)
local sequence = '1'
redis.call('HSET', hash, 'changes', '1', 'status', 'active', 'registered_at', stamp, 'last_heartbeat', stamp,
    'updated_at', stamp, unpack(cjson.decode(fields)))

-- One text, because every table would be sent by itself; it is too short for an encoder to pay.
return '[["done","active",' .. 'null' .. ',"' .. stamp .. '"]]'
