#!lua
-- Asks the holder to replay or drop a parked event.
--
-- KEYS: parked, asked. ARGV: field, what. Replies with 1, or 0 when no such event is parked.
local parked, asked = KEYS[1], KEYS[2]
if redis.call('HEXISTS', parked, ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', asked, ARGV[1], ARGV[2])
return 1
