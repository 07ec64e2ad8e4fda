-- Entities and all that is kept in step with them: indexes, history, metrics, retention and wake-ups.
--
-- Hashes and indexes are written at the end of a step, each index in one command for all entities.

local entities = {}

function M.hash_of(key)
  return L.hash_head .. key .. L.hash_tail
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
  known = M.new_entity(key, hash, record, given)
  entities[key] = known
  return known
end

-- An entity with room for all that is noted of it.
function M.new_entity(key, hash, record, given)
  return {key = key, hash = hash, record = record, given = given, changed = {}, places = nil, own = nil,
    is_dirty = false}
end

-- Indexes.

local zrem, srem, zadd, sadd, grown, NOWHERE = {}, {}, {}, {}, {}, {}
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

-- Moves an entity from the indexes that it was in to those that it belongs to.
function M.follow(entity)
  local key, was = entity.key, entity.places or NOWHERE
  local places = entity.record and M.find_places(entity.record) or NOWHERE
  for n = 1, L.last_place, 2 do
    local before, was_scored, after, score = was[n], was[n + 1], places[n], places[n + 1]
    if before and before ~= after then M.put(was_scored and zrem or srem, before, key) end
    if after and (before ~= after or was_scored ~= score) then
      if score then
        M.put(zadd, after, score, key)
      else
        M.put(sadd, after, key)
      end
      -- What was empty until now is news to those who wait.
      if n == L.news_place then grown[after] = entity.record end
    end
  end
  entity.places = places
end

-- The stack of Lua has room for some thousands of arguments.
local AT_ONCE = 4000

-- Writes what was collected for some indexes; what is collected from then on is another table.
function M.call_all(command, lists)
  if not next(lists) then return lists end
  for key, list in pairs(lists) do
    for first = 1, #list, AT_ONCE do
      redis.call(command, key, unpack(list, first, math.min(first + AT_ONCE - 1, #list)))
    end
  end
  return {}
end

function M.write_indexes()
  zrem = M.call_all('ZREM', zrem)
  srem = M.call_all('SREM', srem)
  for key, record in pairs(grown) do
    if redis.call('EXISTS', key) == 0 then
      has_news = true
      if L.known then
        if redis.call('HSETNX', L.known, M.part_of(record)) == 1 then redis.call('INCR', L.known .. ':version') end
      end
    end
  end
  zadd = M.call_all('ZADD', zadd)
  sadd = M.call_all('SADD', sadd)
  if next(grown) then grown = {} end
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
  if L.outbox then
    for _, kind in ipairs(kinds) do
      if #kind.rows > 0 then M.write_kind(kind) end
    end
    if next(kinds) then kinds = {} end
  else
    for key, lines in pairs(histories) do
      redis.call('RPUSH', L.history .. key, unpack(lines))
      redis.call('LTRIM', L.history .. key, -L.most_history, -1)
    end
    if next(histories) then histories = {} end
  end
end

function M.trace_of(record)
  local own = L.trace and record[L.trace]
  if own and own ~= '' then return own end
  return args.trace or ''
end

function M.fence_of(record)
  return L.has_lease and M.value(record, L.lease.fence) or '0'
end

function M.note_history(entity, edge, actor, given, owner)
  local record = entity.record
  local sequence = M.text((record[L.sequence] or 0) + 1)
  record[L.sequence] = sequence
  entity.changed[L.sequence] = true
  local reason = edge.reason and given[edge.reason] or ''
  if reason == cjson.null then reason = '' end
  if L.outbox then
    local change = {entity.key, sequence}
    if L.has_lease then
      change[3], change[4] = owner, M.fence_of(record)
    end
    if edge.reason then change[#change + 1] = reason end
    if L.trace then change[#change + 1] = M.trace_of(record) end
    if L.archived[edge.target] then change[#change + 1] = record end
    M.tell(edge, actor, edge.columns, change)
  else
    M.write_line(entity.key, {sequence, edge.name, edge.source, edge.target, actor, M.text(now), M.fence_of(record),
        owner, reason, M.trace_of(record)})
  end
end

-- Metrics: fields of one hash.

local metrics, counts, observed, recent = {}, {}, {}, {}

-- What is counted at a change.
function M.metrics_of(name)
  local found = metrics[name]
  if found == nil then
    found = M.make_metrics(name) or false
    metrics[name] = found
  end
  return found
end

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
  local counted = M.metrics_of(name)
  if not counted then return end
  for _, metric in ipairs(counted) do
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
  if not next(counts) and not next(observed) and not next(recent) then return end
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

function M.write_hashes()
  for _, entity in ipairs(dirty) do
    if entity.record then M.write_hash(entity) end
    entity.is_dirty = false
  end
  if dirty[1] then dirty = {} end
end

function M.flush()
  if L.changes_hashes then
    M.write_hashes()
  end
  M.write_indexes()
  if L.has_history then
    M.write_histories()
  end
  if L.has_metrics then
    M.write_metrics()
  end
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
  elseif not entity.places then
    entity.places = M.find_places(entity.record)
  end
end

-- What was done, for the audit: of each change its name, key, owner, fence, trace and actor, one behind the other,
-- and last the age of an update by the clock, or the state that an edge has left which leaves several.
local done = {}

function M.note_done(name, key, owner, fence, trace, actor, more)
  local n = #done
  done[n + 1], done[n + 2], done[n + 3], done[n + 4] = name, key, owner or '', fence or ''
  done[n + 5], done[n + 6], done[n + 7] = trace or '', actor or '', more or ''
end

-- Unique values.

function M.unique_key(name, found)
  return L.unique[name].key[1] .. found .. L.unique[name].key[2]
end

function M.unique_owner(name, found)
  local kept = redis.call('GET', M.unique_key(name, found))
  if kept and L.is_virtual then
    local until_, key = string.match(kept, '^(%d*)|(.*)$')
    return (until_ == '' or tonumber(until_) > now) and key
  end
  return kept
end

function M.keep_unique(name, found, key)
  local seconds, kept_as = L.unique[name].seconds, M.unique_key(name, found)
  local length = seconds and M.microseconds(L.values[seconds])
  if L.is_virtual then
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
  if L.history then
    redis.call('DEL', L.history .. entity.key)
  end
  if L.ending then
    redis.call('ZREM', L.ending, entity.key)
  end
  if L.most_terminal then
    redis.call('ZREM', L.ended, entity.key)
  end
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
  if L.ending then
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
end

-- Takes edges, and notes all that follows from them.

function M.owner_of(record)
  return L.has_lease and M.value(record, L.lease.owner) or ''
end

-- One edge of a step. What it took is noted with its owner after it and before it.
function M.step(entity, edge, given, owner, taken)
  local before = M.owner_of(entity.record)
  M.after_edge(entity, edge, given, owner)
  taken[#taken + 1] = {edge, L.has_lease and M.value(entity.record, L.lease.owner) or before, before}
end

function M.take(entity, change, given, owner, is_final, taken)
  local record, ending = entity.record, change.dead_letter
  if change.is_update then
    M.after_update(entity, change, given)
    taken[#taken + 1] = {change, '', ''}
    return
  end
  local edge, last = M.taken_from(change, record[L.status]), ending and M.change_of(ending.name)
  if not ending then
    M.step(entity, edge, given, owner, taken)
  elseif last.sources[edge.source] then
    local is_over = is_final or M.is_exhausted(ending, record, change.increment ~= ending.count_name)
    M.step(entity, is_over and M.taken_from(last, edge.source) or edge, given, owner, taken)
  else
    M.step(entity, edge, given, owner, taken)
    if is_final or M.is_exhausted(ending, record, true) then
      M.step(entity, M.taken_from(last, edge.target), given, owner, taken)
    end
  end
end

function M.note_changes(entity, taken, actor, noted_actor, given, age)
  local record = entity.record
  for _, each in ipairs(taken) do
    local change, owner, before = each[1], each[2], each[3]
    if owner == '' then owner = before end
    if not change.is_update then M.note_history(entity, change, actor, given, owner) end
    if L.has_metrics then
      M.count_metrics(change.name, record, given)
    end
    local is_leased = L.has_lease and (change.source == L.lease.state or change.target == L.lease.state)
    M.note_done(change.name, entity.key, is_leased and owner, is_leased and M.fence_of(record),
        L.trace and record[L.trace], noted_actor, change.is_update and age or change.has_others and change.source)
  end
end

function M.commit(entity, source, taken, actor, noted_actor, given, age)
  M.revise(entity)
  M.note_changes(entity, taken, actor, noted_actor, given, age)
  M.follow(entity)
  M.mark_dirty(entity)
  if source ~= entity.record[L.status] then M.retain(entity) end
end

-- The answer: what became of each request, and after it records, each as the values of its fields in their order.

local reply = {false}

-- One that is not there has no values.
function M.add_known(key)
  local entity = M.read(key)
  M.add_record(entity and entity.record or {})
end
