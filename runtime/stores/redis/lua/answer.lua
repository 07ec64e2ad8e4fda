-- The end of each operation: everything is written, and those who wait are woken.

local answer = operations[ARGV[1]]()
M.flush()
if has_news and L.wake_up then redis.call('PUBLISH', L.wake_up, L.name) end
-- One text, because every table would be sent by itself; records are texts of their own.
return {cjson.encode({answer[1], done, tokens_used}), unpack(answer[2] or {})}
