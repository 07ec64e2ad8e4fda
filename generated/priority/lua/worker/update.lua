-- spec/priority/lifecycle.yaml entities.worker.kept_in
-- Puts other fields that no transition touches and no index goes by.
-- Generated from it (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
--
-- each key hash workers:{worker_id}
-- each argument key
-- each pairs

local KEYS_ONCE, KEYS_EACH = 0, 1
local answers, a = {}, 0

for n = 1, (#KEYS - KEYS_ONCE) / KEYS_EACH do
  local k = KEYS_ONCE + (n - 1) * KEYS_EACH
  local hash = KEYS[k + 1]
  local key = ARGV[a + 1]
  local first = a + 3
  local last = first - 1 + ARGV[first - 1]
  a = last
  if redis.call('HEXISTS', hash, 'status') == 0 then
    answers[n] = {'none'}
  else
    -- A value that is empty is taken away.
    local fields, gone = {}, {}
    for i = first, last, 3 do
      if ARGV[i + 1] == '1' then
        fields[#fields + 1] = ARGV[i]
        fields[#fields + 1] = ARGV[i + 2]
      else
        gone[#gone + 1] = ARGV[i]
      end
    end
    if #gone > 0 then
      redis.call('HDEL', hash, unpack(gone))
    end
    if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end
    answers[n] = {'done'}
  end
end

return answers
