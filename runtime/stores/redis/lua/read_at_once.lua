-- Reads several things of one moment; nothing is changed. Unlike MULTI it is let in where memory is short.
--
-- KEYS are what is read. ARGV are the commands, each after the number of its words.

local answers, place = {}, 1
while place <= #ARGV do
  local words = tonumber(ARGV[place])
  answers[#answers + 1] = redis.call(unpack(ARGV, place + 1, place + words))
  place = place + 1 + words
end
return answers
