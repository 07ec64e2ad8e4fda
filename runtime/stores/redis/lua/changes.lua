-- Changes that a caller asks for, and claims: leases are settled and claimed in one step.

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
    if has_proof and L.has_lease and M.is_of_lease(each, record) then
      local problem = M.lease_problem(record, owner, fence)
      if problem then
        entities[key] = nil
        return {problem}
      end
    end
    M.take(entity, each, given, new_owner, is_final, taken)
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

-- How many more an owner may have, and what it says that it is able to do.
function M.room_for(owner, wanted)
  local state, capacity, offered = unpack(redis.call('HMGET', L.holder.head .. owner .. L.holder.tail,
      L.holder.status, L.holder.capacity, L.holder.offers))
  if not state or not L.holder.states[state] then return 0, nil end
  local held = redis.call('SCARD', L.held[1] .. owner .. L.held[2])
  return math.max(0, math.min(wanted, (capacity or 0) - held)), offered or '[]'
end

-- What an owner is able to do, as a set; nothing means everything. What it asks for never widens that.
function M.offers_of(offered)
  local asked = args.capabilities
  if asked == cjson.null then asked = nil end
  local own = {}
  if asked then
    for _, each in ipairs(asked) do own[each] = true end
  end
  if not L.has_holder then return asked and own or nil end
  local found = {}
  for _, each in ipairs(cjson.decode(offered)) do
    if not asked or own[each] then found[each] = true end
  end
  return found
end

function M.next_keys(rank, signatures, offset, most)
  local to = L.not_before and M.text(now) or '+inf'
  if not signatures or #signatures == 1 then
    local key = signatures and rank.part[1] .. signatures[1] .. rank.part[2] or rank.key
    return M.members(key, to, offset, most)
  end
  local keys, all = {}, {}
  for _, signature in ipairs(signatures) do
    local found = redis.call('ZRANGEBYSCORE', rank.part[1] .. signature .. rank.part[2], '-inf', to, 'WITHSCORES',
        'LIMIT', 0, offset + most)
    for i = 1, #found, 2 do all[#all + 1] = {tonumber(found[i + 1]), found[i]} end
  end
  table.sort(all, function(one, other)
    if one[1] ~= other[1] then return one[1] < other[1] end
    return one[2] < other[2]
  end)
  for i = offset + 1, math.min(#all, offset + most) do keys[#keys + 1] = all[i][2] end
  return keys
end

function M.claim_one(key, rank, signatures, edge, paused, owner)
  local entity = M.read(key)
  local record = entity and entity.record
  if not record or M.free_place(record) ~= rank.key then
    -- Whatever the index says, this one is not to be had.
    M.put(zrem, rank.key, key)
    for _, signature in ipairs(signatures or {}) do
      M.put(zrem, rank.part[1] .. signature .. rank.part[2], key)
    end
    return false
  end
  if L.rank_field then
    if paused[M.value(record, L.rank_field)] then return false end
  end
  if args.where and not M.equals(record, args.where) then return false end
  local source, taken = record[L.status], {}
  M.prepare(entity)
  M.take(entity, edge, {}, owner, false, taken)
  M.commit(entity, source, taken, args.actor, nil, {})
  M.add_record(record)
  return true
end

function M.find_paused()
  local paused = {}
  for _, word in ipairs(L.paused and redis.call('SMEMBERS', L.paused) or {}) do paused[word] = true end
  return paused
end

function M.claim(owner, wanted)
  if L.has_on_access then
    M.run_on_access()
    M.flush()
  end
  local free, offered, signatures = wanted, nil, nil
  if L.has_holder then
    free, offered = M.room_for(owner, wanted)
  end
  if free < 1 then return end
  if L.known then
    signatures = M.find_fitting(M.offers_of(offered))
    if #signatures == 0 then return end
  end
  local paused, edge = M.find_paused(), M.change_of(L.lease.entering)
  for _, rank in ipairs(L.ranks) do
    local offset = 0
    while free > 0 and not paused[rank.word] do
      local keys = M.next_keys(rank, signatures, offset, free)
      local left = #keys
      for _, key in ipairs(keys) do
        if M.claim_one(key, rank, signatures, edge, paused, owner) then free = free - 1 end
      end
      if left == 0 then break end
      offset = offset + left
    end
  end
end

-- Makes all changes that are asked for; what became of each, and how many were made.
function M.make_changes()
  local answers, made = {}, 0
  for n, request in ipairs(args.requests) do
    answers[n] = M.try_change(request)
    if answers[n][1] == 'done' then made = made + 1 end
  end
  return answers, made
end

function M.run_change()
  M.let_finish()
  M.forget()
  local answers = M.make_changes()
  return answers
end

function M.run_claim()
  M.let_finish()
  M.forget()
  M.claim(args.owner, args.free)
  return {}
end

function M.run_exchange()
  M.let_finish()
  M.forget()
  local answers, settled = M.make_changes()
  M.flush()
  M.claim(args.owner, args.free + settled)
  return answers
end
