-- spec/priority/lifecycle.yaml entities.worker.shifts.beat
-- It is heard of.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_alive workers:heartbeats
-- each key hash        workers:{worker_id}
-- once argument actor
-- once argument way
-- each argument key
-- each argument take.reported_load
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 1, 1
local ARGV_ONCE, ARGV_EACH = 2, 2
local index_alive = KEYS[1]
local actor = ARGV[1]
local way = ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local DONE, SAME, NONE, STATE, LOST = 'done', 'same', 'none', 'state', 'lost'
local EARLY, AGAIN, HOLDS, WAY = 'early', 'again', 'holds', 'way'

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
  local take_reported_load = ARGV[a + 2]
  local row = redis.call('HMGET', hash, 'status')
  local was_status = unpack(row)

  if way ~= 'plain' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif was_status ~= 'active' and was_status ~= 'draining' then
    answers[n] = {STATE, was_status}
  else
    seen[hash] = true
    local new_reported_load = take_reported_load ~= '' and take_reported_load or nil
    put(zadd, index_alive, stamp, key)
    local fields, gone = {'last_heartbeat', stamp}, {}
    keep(fields, gone, 'reported_load', new_reported_load, true)
    if #gone > 0 then redis.call('HDEL', hash, unpack(gone)) end
    if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end
    answers[n] = {DONE, was_status, ''}
  end
end

for key, members in pairs(zadd) do
  redis.call('ZADD', key, unpack(members))
end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
