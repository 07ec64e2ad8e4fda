-- Deletes every task but those that wait for a capability, with all their keys.
local gone = 0
local function forget(index, beside)
  for _, id in ipairs(redis.call('ZRANGE', index, 0, -1)) do
    redis.call('DEL', 'tasks:' .. id)
    for _, each in ipairs(beside) do
      redis.call('ZREM', each, id)
    end
    gone = gone + 1
  end
  redis.call('DEL', index)
end
forget('queue:medium:cap:any', {'queue:medium', 'tasks:status:queued'})
for _, state in ipairs({'executing', 'completed', 'failed', 'cancelled', 'dead_letter'}) do
  forget('tasks:status:' .. state, {'queue:dlq'})
end
redis.call('DEL', 'executing:deadlines', 'queue:dlq', 'history:outbox', 'metrics', 'workers:heartbeats')
for _, key in ipairs(redis.call('KEYS', 'worker*')) do
  redis.call('DEL', key)
end
return gone
