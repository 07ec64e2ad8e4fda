-- spec/priority/lifecycle.yaml entities.task.lease
-- Who could be leased next, in the order of the spec; nothing is changed.
-- Generated from it (sha256:6418978cf4e9c4f8). Do not edit; run `nox -s generate`.
--
-- once key version      queue:capabilities:version
-- once key paused       queue:paused
-- once key holder       workers:{owner}
-- once key index_booked worker_tasks:{owner}
-- each key part.high    queue:high:cap:{signature}
-- each key part.medium  queue:medium:cap:{signature}
-- each key part.low     queue:low:cap:{signature}
-- once argument most
-- once argument spare

local KEYS_ONCE, KEYS_EACH = 4, 3
local ARGV_ONCE, ARGV_EACH = 2, 0
local version = KEYS[1]
local paused = KEYS[2]
local holder = KEYS[3]
local index_booked = KEYS[4]
local part = {high = 1, medium = 2, low = 3}
local most = ARGV[1]
local spare = ARGV[2]
local free = tonumber(most)
local status, capacity, offers = unpack(redis.call('HMGET', holder, 'status', 'capacity', 'capabilities'))
if status ~= 'active' then
  free = 0
else
  free = math.min(free, capacity - redis.call('SCARD', index_booked))
end
local resting = {}
for _, word in ipairs(redis.call('SMEMBERS', paused)) do
  resting[word] = true
end
-- Some more than are wanted: somebody else may be faster with a few of them.
local window, found = free > 0 and free + spare or 0, {}

local function older(one, other)
  if one[1] ~= other[1] then
    return one[1] < other[1]
  end
  return one[2] < other[2]
end

local function look(keys, word)
  local heads, left = {}, window - #found / 3
  for n, key in ipairs(keys) do
    local members = redis.call('ZRANGE', key, 0, left - 1, 'WITHSCORES')
    for i = 1, #members, 2 do
      heads[#heads + 1] = {tonumber(members[i + 1]), members[i], n}
    end
  end
  if #keys > 1 then
    table.sort(heads, older)
  end
  for i = 1, math.min(#heads, left) do
    found[#found + 1] = word
    found[#found + 1] = heads[i][3]
    found[#found + 1] = heads[i][2]
  end
end

for _, word in ipairs({'high', 'medium', 'low'}) do
  if #found / 3 < window and not resting[word] then
    local keys = {}
    for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
      keys[n] = KEYS[KEYS_ONCE + (n - 1) * KEYS_EACH + part[word]]
    end
    look(keys, word)
  end
end
return {redis.call('GET', version) or '0', status or '', offers or '', free, found}
