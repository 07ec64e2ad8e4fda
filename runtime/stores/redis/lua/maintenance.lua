-- All other operations: due changes, renewals, updates, deletions, and reading what time has changed.

local operations = {}

function operations.due()
  M.let_finish()
  M.forget()
  local count = 0
  for _, each in ipairs(args.clocks) do count = count + M.run_clock(L.clocks[each[1]](), each[2]) end
  return {count}
end

function operations.renew()
  M.let_finish()
  M.forget()
  local rows = {}
  for n, each in ipairs(args.held) do
    local entity = M.access(each[1])
    rows[n] = ''
    if entity and not M.lease_problem(entity.record, each[2], each[3]) then
      local lease, record, made = L.lease, entity.record, {}
      M.prepare(entity)
      if lease.expires then
        made[lease.expires] = M.time_value(lease.expires, M.lease_end(record, now, args.seconds))
      end
      if lease.renewed then made[lease.renewed] = M.time_value(lease.renewed, M.moment_after(record, now)) end
      M.apply(entity, made)
      M.revise(entity)
      M.follow(entity)
      M.mark_dirty(entity)
      rows[n] = cjson.encode(record)
    end
  end
  return {{}, rows}
end

function operations.update()
  M.let_finish()
  M.forget()
  local entity = M.access(args.key)
  if not entity then return {{}, {''}} end
  M.prepare(entity)
  local made = {}
  for name, new in pairs(args.fields) do made[name] = new ~= cjson.null and new end
  M.apply(entity, made)
  M.revise(entity)
  M.follow(entity)
  M.mark_dirty(entity)
  return {{}, {cjson.encode(entity.record)}}
end

function M.delete(entity)
  local record = entity.record
  M.note_done('delete', entity.key, nil, nil, L.trace and record[L.trace])
  M.count_metrics('delete', record, {})
  M.drop(entity)
end

function operations.delete()
  M.let_finish()
  M.forget()
  local entity = M.access(args.key)
  if not entity then return {{'none'}} end
  local state = entity.record[L.status]
  if state ~= args.expected or not L.deletable[state] then return {{'state', state}} end
  local held = M.is_held(args.key)
  if held > 0 then return {{'holds', held}} end
  M.delete(entity)
  return {{'done', state}}
end

-- Deletes some of those that have not changed for long; how many stay is where the next call goes on.
function operations.purge()
  M.let_finish()
  M.forget()
  local purged, stays, before = 0, args.offset, now - M.microseconds(args.older_than_s)
  local keys = redis.call('ZRANGE', L.listed[args.state], args.offset, args.offset + args.most - 1)
  for _, key in ipairs(keys) do
    local entity, changed_at = M.read(key), 0
    if entity then
      for _, name in ipairs(L.stamps) do changed_at = math.max(changed_at, M.moment_at(entity.record, name) or 0) end
    end
    if entity and changed_at < before and M.is_held(key) == 0 then
      M.delete(entity)
      purged = purged + 1
    else
      stays = stays + 1
    end
  end
  return {{purged, stays, #keys}}
end

-- Reading, where time changes what there is.

function operations.get()
  M.let_finish()
  M.forget()
  return {{}, {M.access(args.key) and M.row_of(args.key) or ''}}
end

function operations.forget()
  M.let_finish()
  M.forget()
  return {{}}
end

function operations.backlog()
  M.let_finish()
  M.forget()
  local found = {}
  for n, rank in ipairs(L.ranks) do
    local to = L.not_before and M.text(now) or '+inf'
    local first = redis.call('ZRANGEBYSCORE', rank.key, '-inf', to, 'WITHSCORES', 'LIMIT', 0, 1)
    local since = tonumber(first[2] or now)
    if L.has_turns then since = math.floor(since / 1000) * 1000 end
    found[n] = {redis.call('ZCOUNT', rank.key, '-inf', to), first[2] and now - since or 0}
  end
  return {found}
end

-- Forgets sets of needs that no entity has any more, and, where hashes expire by themselves, what has ended.
function operations.trim()
  M.let_finish()
  local trimmed = 0
  if L.retained_s and not L.ending then
    local latest = M.text(now - M.microseconds(L.values[L.retained_s]))
    for state in pairs(L.terminal) do
      local gone = redis.call('ZRANGEBYSCORE', L.listed[state], '-inf', latest, 'LIMIT', 0, 1000)
      if #gone > 0 then trimmed = trimmed + redis.call('ZREM', L.listed[state], unpack(gone)) end
    end
  end
  for _, signature in ipairs(L.known and redis.call('HKEYS', L.known) or {}) do
    local keys = {}
    for n, rank in ipairs(L.ranks) do keys[n] = rank.part[1] .. signature .. rank.part[2] end
    if redis.call('EXISTS', unpack(keys)) == 0 and redis.call('HDEL', L.known, signature) == 1 then
      redis.call('INCR', L.known .. ':version')
      trimmed = trimmed + 1
    end
  end
  return {{trimmed}}
end
