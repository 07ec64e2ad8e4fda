-- Inserts ARGV[1] entries into a queue that no worker of the run claims from: a list, as most peers have it.
local text = string.rep('x', 200)
for number = 1, tonumber(ARGV[1]) do
  redis.call('RPUSH', KEYS[1], number .. text)
end
return redis.call('LLEN', KEYS[1])
