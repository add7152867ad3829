#!lua
-- Creates a group, unless it is there.
--
-- KEYS: the group, the list of groups. ARGV: name settings. Replies with the settings it was created with.
local group, groups = KEYS[1], KEYS[2]
local known = redis.call('HGET', group, 'settings')
if known then
  return known
end
redis.call('SADD', groups, ARGV[1])
redis.call('HSET', group, 'settings', ARGV[2])
return ARGV[2]
