#!lua
-- Holds a run for another lease, by the server's clock.
--
-- KEYS: the head. ARGV: run fence lease (ms). Replies with OK, CLOSED, or FENCED holder since.
local head = KEYS[1]
local run, fence, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
local packed = redis.call('HGET', head, 'run:' .. run)
if not packed then
  return { 'CLOSED' }
end
local before, since, held, f, holder = string.match(packed, '^([^|]*|%d|%d+|%d+)|(%d+)|(%d+)|(%x*)|(.*)$')
if f ~= fence then
  return { 'FENCED', holder, since }
end
local time = redis.call('TIME')
local until_ms = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000) + lease)
redis.call('HSET', head, 'run:' .. run, table.concat({ before, since, until_ms, fence, holder }, '|'))
return { 'OK' }
