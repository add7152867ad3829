#!lua
-- One step of a reader under its fence, or nothing: its mark, what is handed over, what waits, what is parked.
--
-- KEYS: the reader, waiting, parked, asked, feed.
-- ARGV: fence lease (ms) before mark window, then four lists, each with its length in front:
--   waiting (path record …), no longer waiting (path …), parked (field document …), no longer parked (field …),
--   and what was asked and is done (field …).
-- Replies with FENCED holder | MOVED mark | LOST, or OK and how many wait, are parked, are asked for.
local call = redis.call
local reader, waiting, parked, asked, feed = unpack(KEYS)
local fence, lease, before, mark, window = unpack(ARGV, 1, 5)

local known = call('HMGET', reader, 'fence', 'holder', 'mark')
if known[1] ~= fence then
  return { 'FENCED', known[2] or '' }
end
local at = known[3] or ''
if at ~= before and at ~= mark then
  return { 'MOVED', at }
end
if mark ~= at and mark ~= '' and mark ~= '0-0' then
  local seq, stamp = string.match(mark, '^(%d+)%-(%d+)$')
  local entry = call('XRANGE', feed, '0-' .. seq, '0-' .. seq)[1]
  if not entry or entry[2][10] ~= stamp then
    return { 'LOST' }
  end
end
-- No write may fail once another was made: each key must be of its type.
for i = 2, 4 do
  call('HLEN', KEYS[i])
end

local position = 6
local function list()
  local length = tonumber(ARGV[position])
  local first = position + 1
  position = first + length
  return first, position - 1
end
local function write(command, key)
  local first, last = list()
  for i = first, last, 1000 do
    call(command, key, unpack(ARGV, i, math.min(i + 999, last)))
  end
  return first, last
end

local time = call('TIME')
local held = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(lease))
call('HSET', reader, 'lease', held, 'window', window)
if mark ~= at then
  call('HSET', reader, 'mark', mark)
end
write('HSET', waiting)
write('HDEL', waiting)
write('HSET', parked)
local first, last = write('HDEL', parked)
for i = first, last do
  call('HDEL', asked, ARGV[i])
end
write('HDEL', asked)
return { 'OK', call('HLEN', waiting), call('HLEN', parked), call('HLEN', asked) }
