#!lua
-- Holds a reader for another lease, by the server's clock.
--
-- KEYS: the reader, waiting, parked, asked. ARGV: fence lease (ms) mark, as its holder left it.
-- Replies with FENCED holder | MOVED mark, or OK and how many wait, are parked, are asked for.
local reader = KEYS[1]
local known = redis.call('HMGET', reader, 'fence', 'holder', 'mark')
if known[1] ~= ARGV[1] then
  return { 'FENCED', known[2] or '' }
end
if (known[3] or '') ~= ARGV[3] then
  return { 'MOVED', known[3] or '' }
end
local counts = { redis.call('HLEN', KEYS[2]), redis.call('HLEN', KEYS[3]), redis.call('HLEN', KEYS[4]) }
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', reader, 'lease', string.format('%d', now + tonumber(ARGV[2])))
return { 'OK', counts[1], counts[2], counts[3] }
