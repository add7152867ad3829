#!lua
-- Pauses a group, or resumes it. KEYS: the group. ARGV: 1 or 0. Replies with 0 when there is no such group, else 1.
local group = KEYS[1]
if redis.call('HEXISTS', group, 'settings') == 0 then
  return 0
end
redis.call('HSET', group, 'paused', ARGV[1])
return 1
