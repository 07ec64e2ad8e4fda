-- All other operations: due changes, renewals, updates, deletions, and reading what time has changed.

function M.run_due()
  M.let_finish()
  M.forget()
  local count = 0
  for _, each in ipairs(args.clocks) do count = count + M.run_clock(M.make_clock(each[1]), each[2]) end
  return count
end

function M.run_renew()
  M.let_finish()
  M.forget()
  for _, each in ipairs(args.held) do
    local entity = M.access(each[1])
    if entity and not M.lease_problem(entity.record, each[2], each[3]) then
      local record = entity.record
      M.prepare(entity)
      if L.lease.expires then
        made[L.lease.expires] = M.time_value(L.lease.expires, M.lease_end(record, now, args.seconds))
      end
      if L.lease.renewed then
        made[L.lease.renewed] = M.time_value(L.lease.renewed, M.moment_after(record, now))
      end
      M.write_apart(entity)
      M.add_record(record)
    else
      M.add_record({})
    end
  end
end

-- Writes what belongs to no edge.
function M.write_apart(entity)
  M.apply(entity)
  M.revise(entity)
  M.follow(entity)
  M.mark_dirty(entity)
end

function M.run_update()
  M.let_finish()
  M.forget()
  local entity = M.access(args.key)
  if entity then
    M.prepare(entity)
    for name, new in pairs(args.fields) do made[name] = new ~= cjson.null and new end
    M.write_apart(entity)
  end
  M.add_known(args.key)
end

function M.delete(entity)
  local record = entity.record
  M.note_done('delete', entity.key, nil, nil, L.trace and record[L.trace])
  M.count_metrics('delete', record, {})
  M.drop(entity)
end

function M.run_delete()
  M.let_finish()
  M.forget()
  local entity = M.access(args.key)
  if not entity then return {'none'} end
  local state = entity.record[L.status]
  if state ~= args.expected or not L.deletable[state] then return {'state', state} end
  local held = M.is_held(args.key)
  if held > 0 then return {'holds', held} end
  M.delete(entity)
  return {'done', state}
end

-- Deletes some of those that have not changed for long; how many stay is where the next call goes on.
function M.run_purge()
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
  return {purged, stays, #keys}
end

-- Reading, where time changes what there is.

function M.run_get()
  M.let_finish()
  M.forget()
  M.access(args.key)
  M.add_known(args.key)
end

function M.run_forget()
  M.let_finish()
  M.forget()
end

function M.run_backlog()
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
  return found
end

-- Forgets sets of needs that no entity has any more, and, where hashes expire by themselves, what has ended.
function M.run_trim()
  M.let_finish()
  local trimmed = 0
  if L.does_hash_expire then
    local latest = M.text(now - M.microseconds(L.values[L.retained_s]))
    for state in pairs(L.terminal) do
      local gone = redis.call('ZRANGEBYSCORE', L.listed[state], '-inf', latest, 'LIMIT', 0, 1000)
      if #gone > 0 then trimmed = trimmed + redis.call('ZREM', L.listed[state], unpack(gone)) end
    end
  end
  if L.known then
    for _, signature in ipairs(redis.call('HKEYS', L.known)) do
      local keys = {}
      for n, rank in ipairs(L.ranks) do keys[n] = rank.part[1] .. signature .. rank.part[2] end
      if redis.call('EXISTS', unpack(keys)) == 0 and redis.call('HDEL', L.known, signature) == 1 then
        redis.call('INCR', L.known .. ':version')
        trimmed = trimmed + 1
      end
    end
  end
  return trimmed
end
