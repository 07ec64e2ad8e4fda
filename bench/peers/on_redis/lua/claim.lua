-- Minimal claim and settlement: pop the first of the sorted set, read its payload, and delete it.
local found = redis.call('ZPOPMIN', KEYS[1])
if #found == 0 then
  return 0
end
redis.call('HGET', found[1], 'payload')
return redis.call('DEL', found[1])
