-- Changes that a caller asks for, and claims: leases are settled and claimed in one step.

local operations = {}

-- One request: its key, edges, owner and fence of a proof, whether there is one, what is given, whether it is
-- the last try, the owner of a lease that is taken, and whether it settles a lease.
function M.change(key, edges, owner, fence, has_proof, given, is_final, new_owner, is_settlement)
  local entity = M.access(key)
  if not entity then return {is_settlement and 'lost' or 'none'} end
  local record = entity.record
  local source, taken = record[L.status], {}
  if is_settlement then
    local problem = M.lease_problem(record, owner, fence)
    if not problem and not M.applies(M.change_of(edges[1]), record) then problem = 'lost' end
    if problem then return {problem} end
  end
  M.prepare(entity)
  for _, name in ipairs(edges) do
    local each = M.change_of(name)
    if not M.applies(each, record) then
      entities[key] = nil
      return {'state', source}
    end
    if has_proof and M.is_of_lease(each, record) then
      local problem = M.lease_problem(record, owner, fence)
      if problem then
        entities[key] = nil
        return {problem}
      end
    end
    for _, more in ipairs(M.take(entity, each, given, new_owner, is_final)) do taken[#taken + 1] = more end
  end
  M.commit(entity, source, taken, args.actor, nil, given)
  return {'done', record[L.status]}
end

function M.try_change(request)
  local is_well, answer = pcall(M.change, unpack(request, 1, 9))
  if is_well then return answer end
  if type(answer) == 'table' then answer = answer.err end
  local name = string.match(answer, 'UNSTORABLE ([%w_]+)')
  if not name then error(answer, 0) end
  entities[request[1]] = nil
  return {'unstorable', name}
end

-- Claiming.

function M.is_able(needs, offers)
  for _, need in ipairs(cjson.decode(needs)) do
    if not offers[need] then return false end
  end
  return true
end

-- The signatures of all sets of needs that can be met; none where claims do not go by needs.
function M.find_fitting(offers)
  local found, known = {}, redis.call('HGETALL', L.known)
  for i = 1, #known, 2 do
    if not offers or M.is_able(known[i + 1], offers) then found[#found + 1] = known[i] end
  end
  return found
end

function M.room_for(owner, wanted)
  local holder = L.holder
  if not holder then return wanted, nil end
  local state, capacity, offered = unpack(redis.call('HMGET', holder.hash[1] .. owner .. holder.hash[2],
      holder.status, holder.capacity, holder.offers))
  if not state or not holder.states[state] then return 0, nil end
  local held = redis.call('SCARD', L.held[1] .. owner .. L.held[2])
  return math.max(0, math.min(wanted, (capacity or 0) - held)), offered or '[]'
end

-- What an owner is able to do, as a set; nothing means everything. What it asks for never widens that.
function M.offers_of(offered)
  local asked = args.capabilities
  if asked == cjson.null then asked = nil end
  if not L.holder and not L.only then return nil end
  local own = {}
  if asked then
    for _, each in ipairs(asked) do own[each] = true end
  end
  if not L.holder then return asked and own or nil end
  local found = {}
  for _, each in ipairs(cjson.decode(offered)) do
    if not asked or own[each] then found[each] = true end
  end
  return found
end

function M.next_keys(rank, signatures, offset, most)
  local to = L.not_before and M.text(now) or '+inf'
  local keys = {}
  if not signatures or #signatures == 1 then
    local key = signatures and rank.part[1] .. signatures[1] .. rank.part[2] or rank.key
    local found = M.members(key, to, offset, most)
    for i = 1, #found, 2 do keys[#keys + 1] = found[i] end
    return keys
  end
  local all = {}
  for _, signature in ipairs(signatures) do
    local found = M.members(rank.part[1] .. signature .. rank.part[2], to, 0, offset + most)
    for i = 1, #found, 2 do all[#all + 1] = {tonumber(found[i + 1]), found[i]} end
  end
  table.sort(all, function(one, other)
    if one[1] ~= other[1] then return one[1] < other[1] end
    return one[2] < other[2]
  end)
  for i = offset + 1, math.min(#all, offset + most) do keys[#keys + 1] = all[i][2] end
  return keys
end

function M.claim_one(key, rank, signatures, edge, paused, owner, rows)
  local entity = M.read(key)
  local record = entity and entity.record
  if not record or L.indexes[L.free_index](record) ~= rank.key then
    -- Whatever the index says, this one is not to be had.
    M.put(zrem, rank.key, key)
    for _, signature in ipairs(signatures or {}) do
      M.put(zrem, rank.part[1] .. signature .. rank.part[2], key)
    end
    return false
  end
  if L.rank_field and paused[M.value(record, L.rank_field)] then return false end
  if args.where and not M.equals(record, args.where) then return false end
  local source = record[L.status]
  M.prepare(entity)
  M.commit(entity, source, M.take(entity, edge, {}, owner, false), args.actor, nil, {})
  rows[#rows + 1] = cjson.encode(record)
  return true
end

function M.claim(owner, wanted, rows)
  M.run_on_access()
  M.flush()
  local free, offered = M.room_for(owner, wanted)
  if free < 1 then return end
  local signatures = L.known and M.find_fitting(M.offers_of(offered)) or nil
  if signatures and #signatures == 0 then return end
  local paused = {}
  for _, word in ipairs(L.paused and redis.call('SMEMBERS', L.paused) or {}) do paused[word] = true end
  local edge = M.change_of(L.lease.entering)
  for _, rank in ipairs(L.ranks) do
    local offset = 0
    while free > 0 and not paused[rank.word] do
      local keys = M.next_keys(rank, signatures, offset, free)
      local left = #keys
      for _, key in ipairs(keys) do
        if M.claim_one(key, rank, signatures, edge, paused, owner, rows) then free = free - 1 end
      end
      if left == 0 then break end
      offset = offset + left
    end
  end
end

function operations.change()
  M.let_finish()
  M.forget()
  local answers, settled = {}, 0
  for n, request in ipairs(args.requests) do
    answers[n] = M.try_change(request)
    if answers[n][1] == 'done' then settled = settled + 1 end
  end
  M.flush()
  local rows = {}
  if args.owner then M.claim(args.owner, args.free + settled, rows) end
  M.flush()
  return {answers, rows}
end
