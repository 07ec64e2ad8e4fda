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

-- No two are created at the same moment, so that whoever came first is first.
local latest, stamp = tonumber(redis.call('GET', clock) or 0), nil
local answers = {}

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local fields = ARGV[a + 2]
  if redis.call('EXISTS', hash) == 1 then
    answers[n] = {OWN}
  else
    now = math.max(now, latest + 1)
    latest = now
    stamp = string.format('%.0f', now)
    put(zadd, index_alive, stamp, key)
    put(zadd, index_listed.active, stamp, key)
    local sequence = '1'
    redis.call('HSET', hash, 'changes', '1', 'status', 'active', 'registered_at', stamp, 'last_heartbeat',
        stamp, 'updated_at', stamp, unpack(cjson.decode(fields)))
    answers[n] = {DONE, 'active', cjson.null, stamp}
  end
end

if stamp then
  redis.call('SET', clock, stamp)
end
for key, members in pairs(zadd) do
  redis.call('ZADD', key, unpack(members))
end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
