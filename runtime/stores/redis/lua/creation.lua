-- New entities: all of them are planned before the first is written.

local operations = {}

function M.find_unique(record)
  for _, name in ipairs(L.unique_names) do
    local found = record[name]
    if found and found ~= '' then
      local key = M.unique_owner(name, found)
      if key then return key, name end
    end
  end
end

function M.ceiling_count()
  local count = 0
  for _, key in ipairs(L.ceiling.keys) do
    count = count + redis.call(L.ceiling.command, key)
  end
  return count
end

function M.is_under_ceiling(record)
  local key = L.indexes[L.ceiling.index](record)
  return key ~= nil
end

-- The first record of an entity: state, stamps and what is over already are the store's.
function M.first_record(record, moment)
  record[L.sequence] = '1'
  if not L.begins[record[L.status]] then record[L.status] = L.initial end
  for _, name in ipairs(L.creation_stamps) do
    local at = name == L.not_before and M.moment_at(record, name)
    record[name] = M.time_value(name, at and math.max(at, moment) or moment)
  end
  local back = L.held_back_by
  if back and L.waits and L.waits[back] then
    local at = M.moment_at(record, back)
    if at and at <= moment then record[back] = nil end
  end
end

function M.write_new(entity, given, taken, moment, first)
  local key, record, hash, fields = entity.key, entity.record, entity.hash, {}
  local packed = L.is_packed
  if #taken > 0 then
    -- An edge may have written what was given.
    local known = given ~= '' and cjson.decode(given) or {}
    packed = {}
    for name, found in pairs(known) do packed[name] = record[name] == found end
  end
  for name, found in pairs(record) do
    if not packed[name] then
      fields[#fields + 1] = name
      fields[#fields + 1] = found
    end
  end
  if given ~= '' then
    fields[#fields + 1] = '.given'
    fields[#fields + 1] = given
  end
  redis.call('HSET', hash, unpack(fields))
  entities[key] = entity
  for _, name in ipairs(L.unique_names) do
    if record[name] and record[name] ~= '' then M.keep_unique(name, record[name], key) end
  end
  if L.outbox then
    redis.call('XADD', L.outbox, '*', 'entity', L.name, 'key', key, 'sequence', '1', 'to', first, 'at',
        M.text(moment), 'actor', args.actor, 'trace', M.trace_of(record))
  else
    local fence = L.lease and M.value(record, L.lease.fence) or '0'
    M.write_line(key, {'1', 'create', '', first, args.actor, M.text(moment), fence, '', '', M.trace_of(record)})
  end
  M.count_metrics('create', record, {})
  M.note_changes(entity, taken, args.actor, nil, {})
  entity.changed[L.sequence] = #taken > 0 or nil
  M.follow(entity)
  M.mark_dirty(entity)
  M.retain(entity)
end

-- The entity after the edges that its creator takes in the same step; nothing where one does not apply.
function M.begin(entity)
  local taken = {}
  for _, name in ipairs(args.edges or {}) do
    local edge = M.change_of(name)
    if not M.applies(edge, entity.record) then return nil, name end
    for _, each in ipairs(M.take(entity, edge, {}, args.actor, false)) do taken[#taken + 1] = each end
  end
  entity.changed = {}
  return taken
end

-- Says what becomes of each new entity before any of them is written.
function M.plan_creation(most, depth)
  local planned, ahead, keys = {}, {}, {}
  -- No two are created at the same moment, so that the first to come is the first in every index.
  local latest = VIRTUAL and not L.has_turns and 0 or tonumber(redis.call('GET', L.clock) or 0)
  for n = 1, (#ARGV - 2) / 3 do
    local key, given, apart = ARGV[3 * n], ARGV[3 * n + 1], ARGV[3 * n + 2]
    local record = given ~= '' and cjson.decode(given) or {}
    if apart ~= '' then
      for name, found in pairs(cjson.decode(apart)) do record[name] = found end
    end
    -- One that is sent again because its answer was lost finds its own.
    local is_own = args.again and redis.call('EXISTS', M.hash_of(key)) == 1
    local known, name
    if not is_own then known, name = M.find_unique(record) end
    for _, each in ipairs(L.unique_names) do
      if not is_own and not known and record[each] and record[each] ~= '' then
        known, name = ahead[each .. '|' .. record[each]], each
      end
    end
    if is_own then
      planned[n] = {'own', key}
    elseif known then
      planned[n] = {'found', known, name}
    elseif keys[key] or redis.call('EXISTS', M.hash_of(key)) == 1 then
      return {{'exists', key}}
    elseif most and depth >= most then
      planned[n] = {'full'}
    else
      if not VIRTUAL then now = math.max(now, latest + 1) end
      latest = math.max(now, latest + 1)
      if L.has_turns then record['.turn'] = M.text(math.min(latest - math.floor(now / 1000) * 1000, 999)) end
      local entity = {key = key, hash = M.hash_of(key), record = record, changed = {}}
      entity.given = given ~= '' and given or nil
      M.first_record(record, now)
      local first = record[L.status]
      local taken, refused = M.begin(entity)
      if not taken then return {{'refused', refused}} end
      planned[n] = {'new', key, entity, given, taken, now, first}
      keys[key] = true
      for _, each in ipairs(L.unique_names) do
        if record[each] and record[each] ~= '' then ahead[each .. '|' .. record[each]] = key end
      end
      if most and M.is_under_ceiling(record) then depth = depth + 1 end
    end
  end
  return planned, latest
end

function operations.create()
  M.forget()
  local most = L.ceiling and M.number({}, L.ceiling.max) or 0
  local planned, latest = M.plan_creation(most > 0 and most, most > 0 and M.ceiling_count() or 0)
  local answers, rows = {}, {}
  for n, each in ipairs(planned) do
    if each[1] == 'exists' or each[1] == 'refused' then return {{each}} end
    if args.expected and (each[1] == 'found') ~= (args.expected[n] ~= '') then return {{{'replan'}}} end
  end
  for n, each in ipairs(planned) do
    if args.is_plan then
      answers[n] = {each[1], each[2], each[3] ~= nil and type(each[3]) == 'string' and each[3] or ''}
    elseif each[1] == 'new' then
      M.write_new(each[3], each[4], each[5], each[6], each[7])
      local place = L.free_index and L.indexes[L.free_index](each[3].record)
      answers[n] = {'done', M.text(each[6]), place or ''}
      rows[#rows + 1] = args.is_short and '' or M.row_of(each[2])
    else
      answers[n] = each
    end
    if each[1] == 'found' or each[1] == 'own' then rows[#rows + 1] = M.row_of(each[2]) end
  end
  if not args.is_plan and (L.has_turns or not VIRTUAL) then redis.call('SET', L.clock, M.text(math.max(now, latest))) end
  M.flush()
  local depth = {}
  for n = #answers, 1, -1 do
    local place = answers[n][1] == 'done' and answers[n][3]
    if place and place ~= '' then
      depth[place] = (depth[place] or redis.call('ZCARD', place) + 1) - 1
      answers[n][3] = depth[place]
    end
  end
  return {answers, rows}
end
