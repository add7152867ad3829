#!lua
-- Makes one a member of a group for another lease, by the server's clock, and strikes off whose lease has expired.
--
-- KEYS: the group. ARGV: member name lease (ms). Replies with GONE, or OK and the whole group.
local group = KEYS[1]
local member, name, lease = 'member:' .. ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('HEXISTS', group, 'settings') == 0 then
  return { 'GONE' }
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HGET', group, member)
local since = known and string.match(known, '^(%d+)|') or string.format('%d', now)
redis.call('HSET', group, member, since .. '|' .. string.format('%d', now + lease) .. '|' .. name)
local stored = redis.call('HGETALL', group)
local living = { 'OK' }
for i = 1, #stored, 2 do
  local held = string.match(stored[i], '^member:') and tonumber(string.match(stored[i + 1], '^%d+|(%d+)|'))
  if held and held <= now then
    redis.call('HDEL', group, stored[i])
  else
    living[#living + 1] = stored[i]
    living[#living + 1] = stored[i + 1]
  end
end
return living
