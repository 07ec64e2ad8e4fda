-- spec/priority/lifecycle.yaml entities.task.transitions.claim
-- A worker that can run the task takes it.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index_waiting.high     queue:high
-- once key index_waiting.medium   queue:medium
-- once key index_waiting.low      queue:low
-- once key index_delayed          queue:delayed
-- once key index_running          executing:deadlines
-- once key index_booked           worker_tasks:{owner}
-- once key index_listed.queued    tasks:status:queued
-- once key index_listed.executing tasks:status:executing
-- once key outbox                 history:outbox
-- once key paused                 queue:paused
-- once key holder                 workers:{owner}
-- once key idle                   queue:idle
-- once key rings                  queue:idle:rings
-- once key version                queue:capabilities:version
-- each key hash                   tasks:{task_id}
-- part key part_1                 queue:high:cap:{signature}
-- part key part_2                 queue:medium:cap:{signature}
-- part key part_3                 queue:low:cap:{signature}
-- once argument actor
-- once argument owner
-- once argument most
-- once argument window
-- once argument strict
-- once argument believed_offers
-- once argument waits
-- once argument believed_version
-- once argument sets
-- each argument key

local KEYS_ONCE, KEYS_EACH = 14, 1
local KEYS_PART = 3
local ARGV_ONCE, ARGV_EACH = 9, 1
local index_delayed = KEYS[4]
local index_running = KEYS[5]
local index_booked = KEYS[6]
local outbox = KEYS[9]
local paused = KEYS[10]
local holder = KEYS[11]
local idle = KEYS[12]
local rings = KEYS[13]
local version = KEYS[14]
local index_waiting = {high = KEYS[1], medium = KEYS[2], low = KEYS[3]}
local index_listed = {queued = KEYS[7], executing = KEYS[8]}
local to_executing = {from = 'queued', to = 'executing', columns = '["key","sequence","owner","fence","trace"]'}
local actor = ARGV[1]
local owner = ARGV[2]
local most = ARGV[3]
local window = ARGV[4]
local strict = ARGV[5]
local believed_offers = ARGV[6]
local waits = ARGV[7]
local believed_version = ARGV[8]
local sets = ARGV[9]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local DONE, STALE, FULL = 'done', 'stale', 'full'
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

-- Changes of a kind go into the outbox together, unless they are too large for one entry.
local told, LARGE = {}, 1000000

local function write_down(kind)
  redis.call('XADD', outbox, '*', 'entity', 'task', 'from', kind.from, 'to', kind.to, 'at', stamp, 'actor',
      actor, 'columns', kind.columns, 'rows', '[' .. table.concat(kind.rows, ',') .. ']')
  kind.rows, kind.size = {}, 0
end

local function tell(kind, change)
  local row = cjson.encode(change)
  if not kind.rows then
    kind.rows, kind.size = {}, 0
    told[#told + 1] = kind
  elseif kind.size + #row > LARGE then
    write_down(kind)
  end
  kind.rows[#kind.rows + 1] = row
  kind.size = kind.size + #row
end

local status, capacity, offers = unpack(redis.call('HMGET', holder, 'status', 'capacity', 'capabilities'))
-- Whoever chose the parts by something else has to choose again.
if (offers or '') ~= believed_offers or (redis.call('GET', version) or '0') ~= believed_version then
  return {STALE}
end
local free = tonumber(most)
if status ~= 'active' then
  free = 0
else
  free = math.min(free, capacity - redis.call('SCARD', index_booked))
end
if free < 1 then
  return {FULL}
end
local resting = {}
for _, word in ipairs(redis.call('SMEMBERS', paused)) do
  resting[word] = true
end
local k, a = KEYS_ONCE, ARGV_ONCE
local named = #KEYS - k - sets * KEYS_PART
local places = {}
for n = 1, named do
  places[ARGV[a + n]] = n
end
if named > 0 then
  -- A first write that only frees: past it, a Redis without memory lets the script finish.
  redis.call('HDEL', KEYS[k + 1], '')

end
-- What is taken, and what comes next: of that the caller has to name the hash before it can be taken.
local rows, ahead, gone, blocked = {}, {}, 0, false
window = tonumber(window)

local function take(key, n, word, p, signature)
  local hash = KEYS[k + n]
  local part_waiting = KEYS[k + p]
  local index = index_waiting[word]
  local row, was = redis.call('HGETALL', hash), {}
  for i = 1, #row, 2 do
    if row[i] == '.given' then
      was = cjson.decode(row[i + 1])
    end
  end
  -- What was written since then counts instead.
  for i = 1, #row, 2 do
    was[row[i]] = row[i + 1]
  end
  was['.given'] = nil
  local was_status, was_effective_priority, was__signature, was_timeout_seconds, was_attempt,
      was_available_at, was_changes, was_trace_id = was['status'], was['effective_priority'],
      was['.signature'], was['timeout_seconds'], was['attempt'], was['available_at'], was['changes'],
      was['trace_id']

  if was_status ~= 'queued' or was_effective_priority ~= word or was_available_at then
    -- Whatever the index says, this one is not to be had.
    gone = gone + 1
    redis.call('ZREM', index, key)
    redis.call('ZREM', part_waiting, key)
    return
  elseif was__signature ~= signature then
    gone = gone + 1
    redis.call('ZREM', part_waiting, key)
    return
  end
  local ends = text(now + (was_timeout_seconds or 0) * 1000000)
  local fence = text(was_attempt + 1)
  if not was_available_at then put(zrem, index_waiting[was_effective_priority], key) end
  if not was_available_at then put(zrem, part_waiting, key) end
  if was_available_at then put(zrem, index_delayed, key) end
  put(zadd, index_running, ends, key)
  put(sadd, index_booked, key)
  put(zrem, index_listed.queued, key)
  put(zadd, index_listed.executing, stamp, key)
  local sequence = text((was_changes or 0) + 1)
  redis.call('HSET', hash, 'changes', sequence, 'status', 'executing', 'assigned_worker_id', owner,
      'deadline_at', ends, 'attempt', fence, 'started_at', stamp, 'updated_at', stamp)
  tell(to_executing, {key, sequence, owner, fence, was_trace_id or ''})
  was['changes'] = sequence
  was['status'] = 'executing'
  was['assigned_worker_id'] = owner
  was['deadline_at'] = ends
  was['attempt'] = fence
  was['started_at'] = stamp
  was['updated_at'] = stamp
  rows[#rows + 1] = cjson.encode(was)
  free = free - 1
end

local function look(place, word)
  local left = window - #rows - #ahead
  local heads, of, p = {}, {}, named + place
  if tonumber(sets) == 1 then
    heads = redis.call('ZRANGE', KEYS[k + p], 0, left - 1)
  else
    local all = {}
    for n = 1, sets do
      local found = redis.call('ZRANGE', KEYS[k + p + (n - 1) * KEYS_PART], 0, left - 1, 'WITHSCORES')
      for i = 1, #found, 2 do
        all[#all + 1] = {tonumber(found[i + 1]), found[i], n}
      end
    end
    table.sort(all, function(one, other)
      if one[1] ~= other[1] then
        return one[1] < other[1]
      end
      return one[2] < other[2]
    end)
    for i = 1, math.min(#all, left) do
      heads[i] = all[i][2]
      of[i] = all[i][3]
    end
  end
  for i = 1, #heads do
    local n = free > 0 and not blocked and places[heads[i]]
    if n then
      local of_part = of[i] or 1
      take(heads[i], n, word, p + (of_part - 1) * KEYS_PART, ARGV[a + named + of_part])
    else
      ahead[#ahead + 1] = heads[i]
      -- Nothing is taken before what comes first, unless whoever asks has looked a moment ago.
      blocked = strict == '1'
    end
  end
end

for place, word in ipairs({'high', 'medium', 'low'}) do
  if #rows + #ahead < window and not resting[word] then
    look(place, word)
  end
end

for _, kind in ipairs(told) do
  write_down(kind)
end
for key, members in pairs(zrem) do
  redis.call('ZREM', key, unpack(members))
end
for key, members in pairs(zadd) do
  redis.call('ZADD', key, unpack(members))
end
for key, members in pairs(sadd) do
  redis.call('SADD', key, unpack(members))
end

if waits ~= '' and #rows == 0 and #ahead == 0 and gone == 0 and not next(resting) then
  -- Whatever is created next for this holder is handed to it, until the bell rings.
  -- A first write that only frees: past it, a Redis without memory lets the script finish.
  redis.call('HDEL', idle, '')

  redis.call('HSET', idle, owner, waits)
  return {DONE, free, ahead, rows, gone, tonumber(redis.call('GET', rings) or 0)}
end
return {DONE, free, ahead, rows, gone}
