-- The end of each operation: everything is written, and those who wait are woken.

M.flush()
if has_news and L.wake_up then redis.call('PUBLISH', L.wake_up, L.name) end
-- One text, because every table would be sent by itself.
reply[1] = cjson.encode({answer, done, tokens_used})
return reply
