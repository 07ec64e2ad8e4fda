-- spec/priority/lifecycle.yaml entities.worker.transitions.drain
-- It wants no more tasks.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_listed.active   workers:status:active
-- once key index_listed.draining workers:status:draining
-- each key hash                  workers:{worker_id}
-- once argument actor
-- once argument way
-- each argument key
-- answers JSON

local KEYS_ONCE, KEYS_EACH = 2, 1
local ARGV_ONCE, ARGV_EACH = 2, 1
local index_listed = {active = KEYS[1], draining = KEYS[2]}
local actor = ARGV[1]
local way = ARGV[2]
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

local answers, seen = {}, {}
-- A first write that only frees: past it, a Redis without memory lets the script finish.
redis.call('HDEL', KEYS[KEYS_ONCE + 1], '')

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local row = redis.call('HMGET', hash, 'status', 'changes')
  local was_status, was_changes = unpack(row)

  if way ~= 'plain' then
    answers[n] = {WAY}
  elseif seen[hash] then
    answers[n] = {AGAIN, was_status}
  elseif not was_status then
    answers[n] = {NONE}
  elseif was_status ~= 'active' then
    answers[n] = {STATE, was_status}
  else
    seen[hash] = true
    put(zrem, index_listed.active, key)
    put(zadd, index_listed.draining, stamp, key)
    local sequence = text((was_changes or 0) + 1)
    redis.call('HSET', hash, 'changes', sequence, 'status', 'draining', 'updated_at', stamp)
    answers[n] = {DONE, 'draining', ''}
  end
end

for key, members in pairs(zrem) do
  redis.call('ZREM', key, unpack(members))
end
for key, members in pairs(zadd) do
  redis.call('ZADD', key, unpack(members))
end

-- One text, because every table would be sent by itself.
return cjson.encode(answers)
