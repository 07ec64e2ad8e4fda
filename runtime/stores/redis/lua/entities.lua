-- Entities and all that is kept in step with them: indexes, history, metrics, retention and wake-ups.
--
-- Hashes and indexes are written at the end of a step, each index in one command for all entities.

local entities = {}

function M.hash_of(key)
  return L.hash[1] .. key .. L.hash[2]
end

-- The record of a hash. What the entity was created with is one text in it; what was written later counts.
function M.unpack_row(row)
  local given, record = nil, {}
  for i = 1, #row, 2 do
    if row[i] == '.given' then
      given = row[i + 1]
      record = cjson.decode(given)
    end
  end
  for i = 1, #row, 2 do record[row[i]] = row[i + 1] end
  record['.given'] = nil
  return record, given
end

function M.read(key)
  local known = entities[key]
  if known ~= nil then return known or nil end
  local hash = M.hash_of(key)
  local row = redis.call('HGETALL', hash)
  if #row == 0 then
    entities[key] = false
    return nil
  end
  local record, given = M.unpack_row(row)
  known = {key = key, hash = hash, record = record, given = given, changed = {}}
  entities[key] = known
  return known
end

-- Indexes.

local zrem, srem, zadd, sadd, grown = {}, {}, {}, {}, {}
local has_news, has_writes = false, false

function M.put(lists, key, first, second)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  local n = #list
  list[n + 1] = first
  if second then list[n + 2] = second end
end

-- Where an entity is in each index: the key, and the score where it is ordered.
function M.find_places(record)
  local keys, scores = {}, {}
  for n, index in ipairs(L.indexes) do
    keys[n], scores[n] = index(record)
  end
  return keys, scores
end

-- Moves an entity from the indexes that it was in to those that it belongs to.
function M.follow(entity)
  local keys, scores = {}, {}
  if entity.record then keys, scores = M.find_places(entity.record) end
  local was, was_scored = entity.keys or {}, entity.scores or {}
  for n in ipairs(L.indexes) do
    local before, after = was[n], keys[n]
    if before and before ~= after then M.put(was_scored[n] and zrem or srem, before, entity.key) end
    if after and (before ~= after or was_scored[n] ~= scores[n]) then
      if scores[n] then
        M.put(zadd, after, scores[n], entity.key)
      else
        M.put(sadd, after, entity.key)
      end
      -- What was empty until now is news to those who wait.
      if n == L.news_index then grown[after] = entity.record end
    end
  end
  entity.keys, entity.scores = keys, scores
end

-- The stack of Lua has room for some thousands of arguments.
local AT_ONCE = 4000

function M.call_all(command, lists)
  for key, list in pairs(lists) do
    for first = 1, #list, AT_ONCE do
      redis.call(command, key, unpack(list, first, math.min(first + AT_ONCE - 1, #list)))
    end
  end
end

function M.write_indexes()
  M.call_all('ZREM', zrem)
  M.call_all('SREM', srem)
  for key, record in pairs(grown) do
    if redis.call('EXISTS', key) == 0 then
      has_news = true
      if L.known and redis.call('HSETNX', L.known, L.part_of(record)) == 1 then
        redis.call('INCR', L.known .. ':version')
      end
    end
  end
  M.call_all('ZADD', zadd)
  M.call_all('SADD', sadd)
  zrem, srem, zadd, sadd, grown = {}, {}, {}, {}, {}
end

-- Hashes.

function M.write_hash(entity)
  local fields, gone, is_repacked = {}, {}, nil
  for name in pairs(entity.changed) do
    local new = entity.record[name]
    if new ~= nil then
      fields[#fields + 1] = name
      fields[#fields + 1] = new
    else
      gone[#gone + 1] = name
      is_repacked = is_repacked or L.is_packed[name]
    end
  end
  if is_repacked and entity.given then
    -- What was given must not come back.
    local given = cjson.decode(entity.given)
    for _, name in ipairs(gone) do given[name] = nil end
    fields[#fields + 1] = '.given'
    fields[#fields + 1] = cjson.encode(given)
  end
  if #gone > 0 then redis.call('HDEL', entity.hash, unpack(gone)) end
  if #fields > 0 then redis.call('HSET', entity.hash, unpack(fields)) end
  entity.changed = {}
end

-- History: a stream that others read, or a list of each entity.

local kinds, LARGE = {}, 1000000

function M.write_kind(kind)
  redis.call('XADD', L.outbox, '*', 'entity', L.name, 'from', kind.from, 'to', kind.to, 'at', M.text(now), 'actor',
      kind.actor, 'columns', kind.columns, 'rows', '[' .. table.concat(kind.rows, ',') .. ']')
  kind.rows, kind.size = {}, 0
end

-- Changes of a kind go into the outbox together, unless they are too large for one entry.
function M.tell(edge, actor, columns, change)
  local name = edge.name .. '|' .. edge.source .. '|' .. actor
  local kind, row = kinds[name], cjson.encode(change)
  if not kind then
    kind = {from = edge.source, to = edge.target, actor = actor, columns = columns, rows = {}, size = 0}
    kinds[name] = kind
    kinds[#kinds + 1] = kind
  elseif kind.size + #row > LARGE then
    M.write_kind(kind)
  end
  kind.rows[#kind.rows + 1] = row
  kind.size = kind.size + #row
end

local histories = {}

function M.write_line(key, line)
  local list = histories[key]
  if not list then
    list = {}
    histories[key] = list
  end
  list[#list + 1] = cjson.encode(line)
end

function M.write_histories()
  for _, kind in ipairs(kinds) do
    if #kind.rows > 0 then M.write_kind(kind) end
  end
  for key, lines in pairs(histories) do
    redis.call('RPUSH', L.history .. key, unpack(lines))
    redis.call('LTRIM', L.history .. key, -L.most_history, -1)
  end
  kinds, histories = {}, {}
end

function M.trace_of(record)
  local own = L.trace and record[L.trace]
  if own and own ~= '' then return own end
  return args.trace or ''
end

function M.note_history(entity, edge, actor, given, owner)
  local record, lease = entity.record, L.lease
  local sequence = M.text((record[L.sequence] or 0) + 1)
  record[L.sequence] = sequence
  entity.changed[L.sequence] = true
  local fence = lease and M.value(record, lease.fence) or '0'
  local reason = edge.reason and given[edge.reason] or ''
  if reason == cjson.null then reason = '' end
  if not L.outbox then
    M.write_line(entity.key, {sequence, edge.name, edge.source, edge.target, actor, M.text(now), fence, owner, reason,
        M.trace_of(record)})
    return
  end
  local change = {entity.key, sequence}
  if lease then
    change[3], change[4] = owner, fence
  end
  if edge.reason then change[#change + 1] = reason end
  if L.trace then change[#change + 1] = M.trace_of(record) end
  if L.archived[edge.target] then change[#change + 1] = record end
  M.tell(edge, actor, edge.columns, change)
end

-- Metrics: fields of one hash.

local counts, observed, recent = {}, {}, {}

function M.observe(name, waited, bounds)
  local seen = observed[name]
  if not seen then
    seen = {bounds = bounds, sum = 0}
    observed[name] = seen
  end
  local place = 1
  while bounds[place] and waited > bounds[place] * 1000000 do place = place + 1 end
  seen[place] = (seen[place] or 0) + 1
  seen.sum = seen.sum + waited
end

function M.count_metrics(name, record, given)
  local counted = L.counts[name]
  if not counted then return end
  for _, metric in ipairs(counted()) do
    local words = {metric.name}
    for _, label in ipairs(metric.labels) do
      local word = label.word or label.field and M.value(record, label.field) or label.given and given[label.given]
      words[#words + 1] = word and word ~= cjson.null and word or ''
    end
    local series = table.concat(words, '|')
    if metric.bounds then
      M.observe(series, now - (M.moment_at(record, metric.since) or now), metric.bounds)
    else
      local into = metric.is_recent and recent or counts
      into[series] = (into[series] or 0) + 1
    end
  end
end

function M.write_metrics()
  for series, by in pairs(counts) do redis.call('HINCRBY', L.metrics, series, by) end
  for series, seen in pairs(observed) do
    for place = 1, #seen.bounds + 1 do
      if seen[place] then
        redis.call('HINCRBY', L.metrics, series .. '|le|' .. (seen.bounds[place] or '+Inf'), seen[place])
      end
    end
    redis.call('HINCRBY', L.metrics, series .. '|sum', M.text(seen.sum))
  end
  -- The last seconds of a count, in a ring: a slot of another second begins anew.
  local this_second = M.text(math.floor(now / 1000000))
  for series, by in pairs(recent) do
    local slot = series .. '|' .. (this_second % L.window_slots)
    local second, before = string.match(redis.call('HGET', L.metrics, slot) or '', '^(%d+):(%d+)$')
    if second == this_second then by = by + before end
    redis.call('HSET', L.metrics, slot, this_second .. ':' .. by)
  end
  counts, observed, recent = {}, {}, {}
end

-- The end of a step.

local dirty = {}

-- A first write that only frees: past it, a Redis without memory lets the script finish.
function M.let_finish()
  if not has_writes then
    redis.call('DEL', L.clock .. ':nothing')
    has_writes = true
  end
end

function M.flush()
  for _, entity in ipairs(dirty) do
    if entity.record then M.write_hash(entity) end
    entity.is_dirty = false
  end
  dirty = {}
  M.write_indexes()
  M.write_histories()
  M.write_metrics()
end

function M.revise(entity)
  if L.revision then
    entity.record[L.revision] = M.text((M.value(entity.record, L.revision) or 0) + 1)
    entity.changed[L.revision] = true
  end
end

function M.mark_dirty(entity)
  if not entity.is_dirty then
    entity.is_dirty = true
    dirty[#dirty + 1] = entity
  end
end

-- Notes where an entity is before it changes. What it left in this step must be written before it enters anew.
function M.prepare(entity)
  if entity.is_dirty then
    M.flush()
  elseif not entity.keys then
    entity.keys, entity.scores = M.find_places(entity.record)
  end
end

-- What was done, for the audit: by each change its name, key, owner, fence, trace and actor, and the state that
-- an edge has left which leaves several.
local done = {}

function M.note_done(name, key, owner, fence, trace, actor, source)
  done[#done + 1] = {name, key, owner or '', fence or '', trace or '', actor or '', source}
end

-- Unique values.

function M.unique_key(name, found)
  return L.unique[name].key[1] .. found .. L.unique[name].key[2]
end

function M.unique_owner(name, found)
  local kept = redis.call('GET', M.unique_key(name, found))
  if not kept or not VIRTUAL then return kept end
  local until_, key = string.match(kept, '^(%d*)|(.*)$')
  if until_ == '' or tonumber(until_) > now then return key end
end

function M.keep_unique(name, found, key)
  local seconds, kept_as = L.unique[name].seconds, M.unique_key(name, found)
  local length = seconds and M.microseconds(L.values[seconds])
  if VIRTUAL then
    redis.call('SET', kept_as, (length and M.text(now + length) or '') .. '|' .. key)
  elseif length then
    redis.call('SET', kept_as, key, 'PX', math.ceil(length / 1000))
  else
    redis.call('SET', kept_as, key)
  end
end

function M.free_unique(record, key)
  for name in pairs(L.unique) do
    local found = record[name]
    if found and found ~= '' then
      local kept = redis.call('GET', M.unique_key(name, found))
      if kept and (kept == key or string.match(kept, '^%d*|(.*)$') == key) then
        redis.call('DEL', M.unique_key(name, found))
      end
    end
  end
end

-- Removing, and keeping what has ended for a while.

function M.drop(entity)
  M.prepare(entity)
  M.free_unique(entity.record, entity.key)
  entity.record = nil
  M.follow(entity)
  redis.call('DEL', entity.hash)
  if L.history then redis.call('DEL', L.history .. entity.key) end
  if L.ending then redis.call('ZREM', L.ending, entity.key) end
  if L.most_terminal then redis.call('ZREM', L.ended, entity.key) end
  entities[entity.key] = false
  M.mark_dirty(entity)
end

function M.retain(entity)
  if not L.terminal[entity.record[L.status]] then return end
  if L.retained_s then
    local length = M.microseconds(L.values[L.retained_s])
    if L.ending then
      redis.call('ZADD', L.ending, M.text(now + length), entity.key)
    else
      redis.call('PEXPIRE', entity.hash, M.text(math.ceil(length / 1000)))
    end
  end
  if L.most_terminal then
    redis.call('ZADD', L.ended, redis.call('INCR', L.ended .. ':number'), entity.key)
    while redis.call('ZCARD', L.ended) > L.most_terminal do
      local first = redis.call('ZRANGE', L.ended, 0, 0)[1]
      local other = M.read(first)
      if other then
        M.drop(other)
      else
        redis.call('ZREM', L.ended, first)
      end
    end
  end
end

-- Drops those that have ended long enough ago.
function M.forget()
  if not L.ending then return end
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', L.ending, '-inf', M.text(now), 'LIMIT', 0, 1000)) do
    local entity = M.read(key)
    if entity then
      M.drop(entity)
    else
      redis.call('ZREM', L.ending, key)
    end
  end
  M.flush()
end

-- Takes edges, and notes all that follows from them.

function M.take(entity, change, given, owner, is_final)
  local lease, record = L.lease, entity.record
  local taken = {}
  local function step(edge)
    local owned = lease and M.value(record, lease.owner) or ''
    M.after_edge(entity, edge, given, owner)
    taken[#taken + 1] = {edge, lease and M.value(record, lease.owner) or owned, owned}
  end
  if change.is_update then
    M.after_update(entity, change, given)
    return {{change, '', ''}}
  end
  change = M.taken_from(change, record[L.status])
  local ending = change.dead_letter
  local last = ending and M.change_of(ending.name)
  if not ending then
    step(change)
  elseif last.sources[change.source] then
    local is_over = is_final or M.is_exhausted(ending, record, change.increment ~= ending.count_name)
    step(is_over and M.taken_from(last, change.source) or change)
  else
    step(change)
    if is_final or M.is_exhausted(ending, record, true) then step(M.taken_from(last, change.target)) end
  end
  return taken
end

function M.note_changes(entity, taken, actor, noted_actor, given)
  local lease, record = L.lease, entity.record
  for _, each in ipairs(taken) do
    local change, owner, before = each[1], each[2], each[3]
    if owner == '' then owner = before end
    if not change.is_update then M.note_history(entity, change, actor, given, owner) end
    M.count_metrics(change.name, record, given)
    local is_leased = lease and (change.source == lease.state or change.target == lease.state)
    M.note_done(change.name, entity.key, is_leased and owner, is_leased and M.value(record, lease.fence),
        L.trace and record[L.trace], noted_actor, change.has_others and change.source or nil)
  end
end

function M.commit(entity, source, taken, actor, noted_actor, given)
  local record = entity.record
  M.revise(entity)
  M.note_changes(entity, taken, actor, noted_actor, given)
  M.follow(entity)
  M.mark_dirty(entity)
  if source ~= record[L.status] then M.retain(entity) end
end

function M.row_of(key)
  local entity = M.read(key)
  return entity and cjson.encode(entity.record) or ''
end
