#!lua
-- Takes a reader under a new fence, unless another holds it. What its former holder left stays as it is.
--
-- KEYS: the reader. ARGV: fence holder lease (ms).
-- Replies with BUSY, or HELD mark window generation lease since.
local reader = KEYS[1]
local fence, holder, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
local known = redis.call('HMGET', reader, 'mark', 'window', 'generation', 'lease', 'since', 'fence')
local mark, window, generation = known[1] or '', known[2] or '0', tonumber(known[3] or '0')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if known[6] == fence then
  return { 'HELD', mark, window, generation, known[4], known[5] }
end
if known[6] and tonumber(known[4] or '0') > now then
  return { 'BUSY' }
end
local held, since = string.format('%d', now + lease), string.format('%d', now)
redis.call('HSET', reader, 'fence', fence, 'holder', holder, 'lease', held, 'since', since,
  'generation', generation + 1)
return { 'HELD', mark, window, generation + 1, held, since }
