-- The meaning of a lifecycle inside Redis: `runtime/stores/semantics`, function by function.
--
-- `L` has the constants of one lifecycle, see `scripts.py`; `record` is an entity as its hash has it:
-- every value is a text, and a field that is unset is not there. A moment is a number of microseconds.

local args = cjson.decode(ARGV[1])

function M.read_clock()
  if L.is_virtual then
    -- In a world whose clock is virtual the moment is an argument. It is nowhere else.
    return args.now
  else
    local clock = redis.call('TIME')
    return clock[1] * 1000000 + clock[2]
  end
end

local now = M.read_clock()

local texts = {}

-- Whole numbers as texts. Those of one call are few, and writing one takes longer than looking it up.
function M.text(number)
  local found = texts[number]
  if not found then
    found = string.format('%.0f', number)
    texts[number] = found
  end
  return found
end

-- Fields.

function M.value(record, name)
  local found = record[name]
  if found == nil then return L.defaults[name] end
  return found
end

function M.is_unset(record, name)
  local found = record[name]
  return found == nil or found == '' or found == L.defaults[name]
end

function M.time_value(name, moment)
  if L.has_milliseconds then
    if L.in_ms[name] then return M.text(math.floor(moment / 1000)) end
  end
  return M.text(moment)
end

function M.moment_at(record, name)
  local found = tonumber(M.value(record, name) or nil)
  if L.has_milliseconds then
    if found and L.in_ms[name] then return found * 1000 end
  end
  return found
end

-- Now, but never a time before a stamp that the record has: clocks may step back.
function M.moment_after(record, moment)
  if not L.has_instants then
    moment = math.floor(moment / 1000) * 1000
  end
  local text = M.text(moment)
  for _, name in ipairs(L.stamps) do
    local at = record[name]
    -- Of two numbers with as many digits the text tells which is greater. To make a number of it takes far longer.
    if at and not (#at == #text and at <= text) then
      moment = math.max(moment, M.moment_at(record, name) or moment)
    end
  end
  return moment
end

function M.microseconds(seconds)
  return math.floor(seconds * 1000000)
end

-- A number of the record by its path, that of a variable, or itself.
function M.number(record, path)
  if path.number then return path.number end
  if path.variable then
    if L.has_overrides then
      local own = L.overrides.values[M.value(record, L.overrides.by) or '']
      if own and own[path.variable] then return own[path.variable] end
    end
    return L.values[path.variable]
  end
  local found = M.value(record, path.field)
  if path.member then found = found and cjson.decode(found)[path.member] end
  return tonumber(found) or 0
end

function M.seconds_of(record, path)
  local found = M.number(record, path)
  return path.field and found / 1000 or found
end

-- May it be taken.

function M.equals(record, where)
  for name, wanted in pairs(where) do
    local found = M.value(record, name)
    if wanted == cjson.null then wanted = nil end
    if found ~= wanted then return false end
  end
  return true
end

function M.fits(change, record)
  if change.when then
    for _, flag in ipairs(change.when) do
      if M.value(record, flag) ~= 'true' then return false end
    end
  end
  return not change.where or M.equals(record, change.where)
end

function M.applies(change, record)
  return change.sources[record[L.status]] and M.fits(change, record)
end

-- The same edge as it is taken out of one of the states that it leaves.
function M.taken_from(edge, state)
  if not edge.has_others or edge.source == state then return edge end
  return setmetatable({source = state}, {__index = edge})
end

-- Whether a change of a record is one of its lease, so that a proof that is given is compared.
function M.is_of_lease(change, record)
  return change.sources[L.lease.state] and (change.is_update or record[L.status] == L.lease.state)
end

function M.is_expired(record)
  if L.lease.expires then
    local ends = M.moment_at(record, L.lease.expires)
    return ends ~= nil and ends <= now
  end
  return false
end

-- What is wrong with the proof of a lease: 'lost', 'stale' where only the fence differs, or nothing.
function M.lease_problem(record, owner, fence)
  if record[L.status] ~= L.lease.state then return 'lost' end
  if owner ~= '' and M.value(record, L.lease.owner) ~= owner then return 'lost' end
  if fence ~= 0 and tonumber(M.value(record, L.lease.fence)) ~= fence then return 'stale' end
  if owner ~= '' and M.is_expired(record) then return 'lost' end
  return nil
end

-- What an edge writes. Writes are collected, and every word reads the record as it was before the edge.

-- What a change writes, where `false` means unset. It is one table for all changes: one that grows is copied.
local made = {}

function M.lease_end(record, moment, seconds)
  return moment + M.microseconds(seconds or M.number(record, L.lease_seconds))
end

local tokens_used = 0

function M.next_token()
  tokens_used = tokens_used + 1
  return args.tokens[tokens_used]
end

function M.lease_writes(edge, record, owner, moment)
  if edge.target == L.lease.state and edge.source ~= L.lease.state then
    made[L.lease.owner] = owner
    made[L.lease.fence] = M.text((M.value(record, L.lease.fence) or 0) + 1)
    if L.lease.expires then
      made[L.lease.expires] = M.time_value(L.lease.expires, M.lease_end(record, moment))
    end
    if L.lease.renewed then
      made[L.lease.renewed] = M.time_value(L.lease.renewed, moment)
    end
    if L.lease.token then
      made[L.lease.token] = M.next_token()
    end
  elseif edge.source == L.lease.state and edge.target ~= L.lease.state then
    if L.lease.expires then
      made[L.lease.expires] = false
    end
    if L.lease.token then
      made[L.lease.token] = false
    end
    if not (L.lease.keeps_owner and edge.target ~= L.lease.free) then made[L.lease.owner] = false end
  end
end

-- How many times as long as its base a backoff is.
function M.growth(edge, record)
  local backoff = edge.backoff
  if backoff.kind == 'constant' or not backoff.count then return 1 end
  local failures = tonumber(M.value(record, backoff.count) or 0)
  if edge.increment ~= backoff.count then failures = math.max(failures - 1, 0) end
  if backoff.kind == 'linear' then return failures + 1 end
  return (backoff.times and M.number(record, backoff.times) or 2) ^ math.min(failures, 1024)
end

function M.backoff_s(edge, record)
  local backoff, growth = edge.backoff, M.growth(edge, record)
  local most = backoff.max and M.seconds_of(record, backoff.max) or L.longest_wait_s
  local wait = growth == math.huge and most or math.min(M.seconds_of(record, backoff.base) * growth, most)
  local jitter = backoff.jitter and M.number(record, backoff.jitter) or 0
  if jitter ~= 0 then
    local chance = L.is_virtual and args.chance or math.random()
    wait = math.min(wait * (1 - jitter + 2 * jitter * chance), most)
  end
  return math.min(math.max(0, wait), L.longest_wait_s)
end

function M.wait_until(edge, record, moment)
  local wait, until_ = M.microseconds(M.backoff_s(edge, record)), edge.backoff.until_
  if wait <= 0 and until_ == L.held_back_by then return false end
  return M.time_value(until_, moment + wait)
end

-- Ends the waits of other edges: at once in the state of waiting, and with no trace in any other.
function M.end_waits(edge, moment)
  for until_, state in pairs(L.waits) do
    if until_ ~= L.not_before and not (edge.backoff and edge.backoff.until_ == until_) then
      local is_over = edge.target == state and until_ ~= L.held_back_by
      made[until_] = is_over and M.time_value(until_, moment)
    end
  end
end

-- A text as the field has it; an error of the text UNSTORABLE where it cannot be.
function M.typed(name, given)
  local kind = L.kinds[name]
  if kind == 'bool' then return given == 'true' and 'true' or 'false' end
  if kind == 'int' then
    local digits = string.match(given, '^%s*([+-]?%d+)%s*$')
    if not digits then error('UNSTORABLE ' .. name, 0) end
    return digits
  end
  if kind == 'float' and not tonumber(given) then error('UNSTORABLE ' .. name, 0) end
  if type(kind) == 'table' then return kind[given] or given end
  return given
end

function M.take_value(name, take, record, given)
  if take.keep_first and not M.is_unset(record, name) then return record[name] end
  local found = given[take.source]
  if found == nil or found == cjson.null or found == '' then found = take.default end
  return found and M.typed(name, found)
end

function M.take_values(change, record, given)
  for name, take in pairs(change.from_request) do made[name] = M.take_value(name, take, record, given) or false end
end

function M.grow(name, growth, record)
  local grown = math.ceil((M.value(record, name) or 0) * growth.times)
  return M.text(math.floor(math.min(grown, M.number(record, growth.max))))
end

-- Makes what a change writes part of the record.
function M.apply(entity)
  local record, changed = entity.record, entity.changed
  for name, new in pairs(made) do
    made[name] = nil
    new = new or nil
    if record[name] ~= new then
      record[name] = new
      changed[name] = true
    end
  end
end

function M.after_edge(entity, edge, given, owner)
  local record = entity.record
  local moment = M.moment_after(record, now)
  if L.has_lease then
    M.lease_writes(edge, record, owner, moment)
  end
  if edge.increment then made[edge.increment] = M.text((M.value(record, edge.increment) or 0) + 1) end
  if L.has_waits then
    M.end_waits(edge, moment)
    if edge.backoff then made[edge.backoff.until_] = M.wait_until(edge, record, moment) end
  end
  if edge.stamps then
    for _, name in ipairs(edge.stamps) do made[name] = M.time_value(name, moment) end
  end
  if edge.sets then
    for name, set in pairs(edge.sets) do made[name] = set end
  end
  if edge.copy then
    for name, other in pairs(edge.copy) do made[name] = M.value(record, other) or false end
  end
  if edge.from_request then M.take_values(edge, record, given) end
  if edge.multiply then
    for name, growth in pairs(edge.multiply) do made[name] = M.grow(name, growth, record) end
  end
  if edge.clear then
    for _, name in ipairs(edge.clear) do made[name] = false end
  end
  made[L.status] = edge.target
  M.apply(entity)
end

function M.after_update(entity, update, given)
  local record = entity.record
  local moment = M.moment_after(record, now)
  for _, name in ipairs(update.stamps or {}) do made[name] = M.time_value(name, moment) end
  for name, set in pairs(update.sets or {}) do made[name] = set end
  if update.from_request then M.take_values(update, record, given) end
  for _, name in ipairs(update.clear or {}) do made[name] = false end
  M.apply(entity)
end

-- What follows: giving up.

function M.is_exhausted(ending, record, is_counted)
  local failures = M.number(record, ending.count) - (ending.less and M.number(record, ending.less) or 0)
  local limit = M.number(record, ending.limit)
  if is_counted then return failures > limit end
  return failures >= limit
end

local changes = {}

-- An edge or an update by its name.
function M.change_of(name)
  local found = changes[name]
  if not found then
    found = M.make_change(name)
    changes[name] = found
  end
  return found
end
