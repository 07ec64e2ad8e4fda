-- What is due: changes that a clock drives, and those that an access to an entity takes first.

-- Members of an ordered index to a score, those of equal score by their keys.
function M.members(key, to, offset, most)
  return redis.call('ZRANGEBYSCORE', key, '-inf', to, 'LIMIT', offset, most)
end

-- Due changes.

function M.holder_state(record)
  local owner = L.has_holder and M.value(record, L.lease.owner)
  return owner and redis.call('HGET', L.holder.head .. owner .. L.holder.tail, L.holder.status) or nil
end

function M.is_held(key)
  return L.is_holder and redis.call('SCARD', L.held_by_it[1] .. key .. L.held_by_it[2]) or 0
end

function M.is_due(clock, record)
  if clock.change then
    if not M.applies(M.change_of(clock.change), record) then return false end
  elseif not L.deletable[record[L.status]] then
    return false
  end
  if clock.at then
    local at = M.moment_at(record, clock.at)
    return at ~= nil and at + clock.delay < now
  end
  if record[L.status] ~= L.lease.state then return false end
  local state = M.holder_state(record)
  return state == nil or state == clock.holder_in
end

function M.due_given(clock, record)
  local given = {}
  for name, pattern in pairs(clock.values) do
    given[name] = string.gsub(pattern, '{([%w_]+)}', function(field) return M.value(record, field) or '' end)
  end
  return given
end

function M.run_if_due(clock, key)
  local entity = M.read(key)
  if not entity or not M.is_due(clock, entity.record) then return false end
  if not clock.change then
    if M.is_held(key) > 0 then return false end
    M.note_done('delete', key, nil, nil, L.trace and entity.record[L.trace], clock.by)
    M.count_metrics('delete', entity.record, {})
    M.drop(entity)
    return true
  end
  local source, given = entity.record[L.status], M.due_given(clock, entity.record)
  local age = clock.at and now - (M.moment_at(entity.record, clock.at) or now)
  M.prepare(entity)
  local taken = {}
  M.take(entity, M.change_of(clock.change), given, '', false, taken)
  M.commit(entity, source, taken, clock.by, clock.by, given, age)
  return true
end

-- The keys of all that is leased, in their order.
function M.leased_keys()
  local keys = redis.call('ZRANGE', L.listed[L.lease.state], 0, -1)
  table.sort(keys)
  return keys
end

function M.run_clock(clock, most)
  local count, to = 0, clock.at and M.text(now - clock.delay)
  if not clock.at then
    for _, key in ipairs(M.leased_keys()) do
      if count >= most then break end
      if M.run_if_due(clock, key) then count = count + 1 end
    end
    return count
  end
  for _, index in ipairs(clock.indexes) do
    local offset = 0
    while count < most do
      local found = M.members(index, to, offset, most)
      for _, key in ipairs(found) do
        if M.run_if_due(clock, key) then
          count = count + 1
        elseif not M.read(key) then
          -- Its hash has expired, or was removed by hand.
          M.put(zrem, index, key)
          M.note_done('.forgotten', key)
        end
        if count >= most then break end
      end
      if #found < most then break end
      -- All of these stand before those that are meant.
      offset = offset + most
    end
  end
  return count
end

function M.run_on_access(key)
  for _, number in ipairs(args.access or {}) do
    local clock = M.make_clock(number)
    if key then
      M.run_if_due(clock, key)
    else
      M.run_clock(clock, L.most_on_access)
    end
  end
end

-- An entity after all that is due for it whenever it is accessed.
function M.access(key)
  if L.has_on_access then
    M.run_on_access(key)
  end
  return M.read(key)
end
