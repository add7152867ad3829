#!lua
-- Gives a reader up, with nothing handed over.
--
-- KEYS: the reader. ARGV: fence. Replies with FENCED holder, or OK; a reader that nobody holds is given up.
local reader = KEYS[1]
local known = redis.call('HMGET', reader, 'fence', 'holder')
if known[1] and known[1] ~= ARGV[1] then
  return { 'FENCED', known[2] or '' }
end
redis.call('HDEL', reader, 'fence', 'holder', 'lease', 'since', 'window')
return { 'OK' }
