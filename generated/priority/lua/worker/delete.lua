-- spec/priority/lifecycle.yaml entities.worker.delete
-- A worker that holds nothing leaves.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_alive           workers:heartbeats
-- once key index_listed.active   workers:status:active
-- once key index_listed.draining workers:status:draining
-- once key index_listed.dead     workers:status:dead
-- each key hash                  workers:{worker_id}
-- each key booked                worker_tasks:{worker_id}
-- once argument actor
-- once argument way
-- each argument key
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 4, 2
local ARGV_ONCE, ARGV_EACH = 2, 1
local index_alive = KEYS[1]
local index_listed = {active = KEYS[2], draining = KEYS[3], dead = KEYS[4]}
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

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local booked = KEYS[k + 2]
  local key = ARGV[a + 1]
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
  elseif redis.call('SCARD', booked) > 0 then
    answers[n] = {HOLDS, was_status, redis.call('SCARD', booked)}
  else
    seen[hash] = true
    put(zrem, index_alive, key)
    put(zrem, index_listed[was_status], key)
    redis.call('DEL', hash)
    answers[n] = {DONE, was_status, ''}
  end
end

for key, members in pairs(zrem) do
  redis.call('ZREM', key, unpack(members))
end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
