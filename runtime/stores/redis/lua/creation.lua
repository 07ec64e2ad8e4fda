-- New entities: all of them are planned before the first is written.

function M.ceiling_count()
  local count = 0
  for _, key in ipairs(L.ceiling.keys) do
    count = count + redis.call(L.ceiling.command, key)
  end
  return count
end

-- A new entity has beside its record what stands by itself in its hash; all else is one text, as it was given.
function M.unpack_new(key, given, apart)
  local record = given ~= '' and cjson.decode(given) or {}
  local own = apart ~= '' and cjson.decode(apart) or {}
  for name, found in pairs(own) do record[name] = found end
  local entity = M.new_entity(key, M.hash_of(key), record, given ~= '' and given or nil)
  entity.own = own
  return entity
end

function M.set_own(entity, name, new)
  entity.record[name], entity.own[name] = new, new
end

-- Makes the first record of an entity: state, stamps and what is over already are the store's.
function M.complete_new(entity, moment)
  local record = entity.record
  if not (L.has_begins and L.begins[record[L.status] or '']) then M.set_own(entity, L.status, L.initial) end
  M.set_own(entity, L.sequence, '1')
  local ahead = nil
  if L.not_before then
    ahead = M.moment_at(record, L.not_before)
  end
  for _, name in ipairs(L.creation_stamps) do
    local at = name == L.not_before and ahead
    M.set_own(entity, name, M.time_value(name, at and math.max(at, moment) or moment))
  end
  if L.is_held_back then
    local at = record[L.held_back_by] and M.moment_at(record, L.held_back_by)
    if at and at <= moment then M.set_own(entity, L.held_back_by, nil) end
  end
end

-- What stands by itself where edges may have written what was given.
function M.find_own(entity)
  local given, own = entity.given and cjson.decode(entity.given) or {}, {}
  for name, found in pairs(entity.record) do
    if given[name] ~= found then own[name] = found end
  end
  return own
end

function M.write_new_hash(entity)
  local fields, n = {'.given', entity.given}, entity.given and 2 or 0
  for name, found in pairs(entity.own) do
    fields[n + 1], fields[n + 2] = name, found
    n = n + 2
  end
  redis.call('HSET', entity.hash, unpack(fields))
end

function M.write_new(entity, taken, moment, first)
  local key, record = entity.key, entity.record
  if L.takes_edges then
    entity.own = M.find_own(entity)
  end
  M.write_new_hash(entity)
  entities[key] = entity
  for _, name in ipairs(L.unique_names) do
    if record[name] and record[name] ~= '' then M.keep_unique(name, record[name], key) end
  end
  if L.outbox then
    redis.call('XADD', L.outbox, '*', 'entity', L.name, 'key', key, 'sequence', '1', 'to', first, 'at',
        M.text(moment), 'actor', args.actor, 'trace', M.trace_of(record))
  else
    M.write_line(key, {'1', 'create', '', first, args.actor, M.text(moment), M.fence_of(record), '', '',
        M.trace_of(record)})
  end
  if L.counts_creation then
    M.count_metrics('create', record, {})
  end
  if L.takes_edges then
    M.note_changes(entity, taken, args.actor, nil, {})
    entity.changed[L.sequence] = #taken > 0 or nil
  end
  M.follow(entity)
  if L.takes_edges then
    M.mark_dirty(entity)
    M.retain(entity)
  end
end

-- The entity after the edges that its creator takes in the same step; nothing where one does not apply.
function M.begin(entity)
  local taken = {}
  for _, name in ipairs(args.edges) do
    local edge = M.change_of(name)
    if not M.applies(edge, entity.record) then return nil, name end
    M.take(entity, edge, {}, args.actor, false, taken)
  end
  entity.changed = {}
  return taken
end

-- The key that has a unique value of a new record already, here or ahead of it in the same call, and its field.
function M.find_taken(record, ahead)
  for _, name in ipairs(L.unique_names) do
    local found = record[name]
    local key = found and found ~= '' and M.unique_owner(name, found)
    if key then return key, name end
  end
  for _, name in ipairs(L.unique_names) do
    local key = ahead[name .. '|' .. (record[name] or '')]
    if key then return key, name end
  end
end

-- Says what becomes of each new entity before any of them is written.
function M.plan_creation()
  local planned, ahead, keys, latest, depth = {}, {}, {}, 0, 0
  if L.ceiling_most then
    depth = M.ceiling_count()
  end
  if L.keeps_clock then
    -- No two are created at the same moment, so that the first to come is the first in every index.
    latest = tonumber(redis.call('GET', L.clock) or 0)
  end
  for n = 1, (#ARGV - 1) / 3 do
    local entity = M.unpack_new(unpack(ARGV, 3 * n - 1, 3 * n + 1))
    local key, record = entity.key, entity.record
    local is_there, known, name = redis.call('EXISTS', entity.hash) == 1, nil, nil
    -- One that is sent again because its answer was lost finds its own.
    local is_own = is_there and args.again
    if not is_own then known, name = M.find_taken(record, ahead) end
    if is_own then
      planned[n] = {'own', key}
    elseif known then
      planned[n] = {'found', known, name}
    elseif is_there or keys[key] then
      return {{'exists', key}}
    elseif L.ceiling_most and depth >= L.ceiling_most then
      planned[n] = {'full'}
    else
      if not L.is_virtual then now = math.max(now, latest + 1) end
      latest = math.max(now, latest + 1)
      if L.has_turns then
        M.set_own(entity, '.turn', M.text(math.min(latest - math.floor(now / 1000) * 1000, 999)))
      end
      M.complete_new(entity, now)
      local first, taken, refused = record[L.status], nil, nil
      if L.takes_edges then
        taken, refused = M.begin(entity)
        if not taken then return {{'refused', refused}} end
      end
      planned[n] = {'new', key, entity, taken, now, first}
      keys[key] = true
      for _, each in ipairs(L.unique_names) do
        if record[each] and record[each] ~= '' then ahead[each .. '|' .. record[each]] = key end
      end
      if L.ceiling_most then
        if M.ceiling_place(record) then depth = depth + 1 end
      end
    end
  end
  return planned, latest
end

-- What a plan says of each, where nothing is written.
function M.tell_plan(planned)
  local answers = {}
  for n, each in ipairs(planned) do
    answers[n] = {each[1], each[2], type(each[3]) == 'string' and each[3] or ''}
    if each[1] == 'found' or each[1] == 'own' then M.add_known(each[2]) end
  end
  return answers
end

function M.write_planned(planned)
  local answers = {}
  for n, each in ipairs(planned) do
    answers[n] = each
    if each[1] == 'new' then
      M.write_new(each[3], each[4], each[5], each[6])
      answers[n] = {'done', M.text(each[5]), L.has_lease and M.free_place(each[3].record) or ''}
      if L.takes_edges then
        M.add_record(each[3].record)
      end
    elseif each[1] ~= 'full' then
      M.add_known(each[2])
    end
  end
  return answers
end

-- Says of each new one how many stand before it where it waits.
function M.add_positions(answers)
  local depth = {}
  for n = #answers, 1, -1 do
    local place = answers[n][1] == 'done' and answers[n][3]
    if place and place ~= '' then
      depth[place] = (depth[place] or redis.call('ZCARD', place) + 1) - 1
      answers[n][3] = depth[place]
    end
  end
end

function M.run_create()
  M.forget()
  local planned, latest = M.plan_creation()
  for n, each in ipairs(planned) do
    if each[1] == 'exists' or each[1] == 'refused' then return {each} end
    if args.expected and (each[1] == 'found') ~= (args.expected[n] ~= '') then return {{'replan'}} end
  end
  if args.is_plan then return M.tell_plan(planned) end
  local answers = M.write_planned(planned)
  if L.keeps_clock then
    redis.call('SET', L.clock, M.text(math.max(now, latest)))
  end
  M.flush()
  if L.has_lease then
    M.add_positions(answers)
  end
  return answers
end
