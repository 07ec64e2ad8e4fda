-- spec/priority/lifecycle.yaml entities.task.kept_in.indexes
-- Takes keys out of an index whose entities are gone.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- once key index {index}
-- each key hash  tasks:{task_id}
-- each argument key

local KEYS_ONCE, KEYS_EACH = 1, 1
local ARGV_ONCE, ARGV_EACH = 0, 1
local index = KEYS[1]
local forgotten = 0

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k, a = KEYS_ONCE + (n - 1) * KEYS_EACH, ARGV_ONCE + (n - 1) * ARGV_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  if redis.call('EXISTS', hash) == 0 then
    forgotten = forgotten + redis.call('ZREM', index, key)
  end
end

return forgotten
