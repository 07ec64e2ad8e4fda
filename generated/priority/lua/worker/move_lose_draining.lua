-- spec/priority/lifecycle.yaml entities.worker.transitions.lose_draining
-- It was not heard of for too long while it drained.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_alive           workers:heartbeats
-- once key index_listed.draining workers:status:draining
-- once key index_listed.dead     workers:status:dead
-- once key metrics               metrics
-- each key hash                  workers:{worker_id}
-- once argument actor
-- once argument way
-- once argument TASK_RETENTION_SECONDS
-- once argument WORKER_DEAD_SECONDS
-- each argument key
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 4, 1
local ARGV_ONCE, ARGV_EACH = 4, 1
local index_alive = KEYS[1]
local metrics = KEYS[4]
local index_listed = {draining = KEYS[2], dead = KEYS[3]}
local actor = ARGV[1]
local way = ARGV[2]
local TASK_RETENTION_SECONDS = tonumber(ARGV[3])
local WORKER_DEAD_SECONDS = tonumber(ARGV[4])
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

local counts = {}

local function count(name, by)
  counts[name] = (counts[name] or 0) + by
end

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local row = redis.call('HMGET', hash, 'status', 'changes', 'last_heartbeat')
  local was_status, was_changes, was_last_heartbeat = unpack(row)

  if way ~= 'due' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif was_status ~= 'draining' then
    answers[n] = {STATE, was_status}
  elseif way == 'due' and not (was_last_heartbeat and tonumber(was_last_heartbeat) + WORKER_DEAD_SECONDS * 1000000 <= now) then
    answers[n] = {EARLY, was_status}
  else
    seen[hash] = true
    put(zrem, index_alive, key)
    put(zrem, index_listed.draining, key)
    put(zadd, index_listed.dead, stamp, key)
    local sequence = text((was_changes or 0) + 1)
    redis.call('HSET', hash, 'changes', sequence, 'status', 'dead', 'updated_at', stamp)
    redis.call('PEXPIRE', hash, text(math.ceil(TASK_RETENTION_SECONDS * 1000)))
    count('worker_heartbeat_failures_total', 1)
    answers[n] = {DONE, 'dead', ''}
  end
end

for key, members in pairs(zrem) do
  redis.call('ZREM', key, unpack(members))
end
for key, members in pairs(zadd) do
  redis.call('ZADD', key, unpack(members))
end
for name, by in pairs(counts) do
  redis.call('HINCRBY', metrics, name, by)
end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
