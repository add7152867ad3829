#!lua
-- Removes entries from the beginning of a feed and keeps what was removed knowable, or does nothing.
--
-- KEYS: feed, feed-base. ARGV: below (entries with a smaller number may go) most (entries to remove; 0: only announce it).
-- Replies with how many entries were removed | UNREADABLE. The newest entry always stays.
local call = redis.call
local feed, base = KEYS[1], KEYS[2]
local below, most = tonumber(ARGV[1]), tonumber(ARGV[2])

local function seq_of(entry)
  return tonumber(string.match(entry[1], '^0%-(%d+)$'))
end

local known = call('HMGET', base, 'seq', 'announced')
local trimmed, announced = tonumber(known[1] or 0), tonumber(known[2] or 0)
local oldest = call('XRANGE', feed, '-', '+', 'COUNT', 1)[1]
local newest = call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]
if not trimmed or not announced then
  return 'UNREADABLE'
end
local last = nil
if most > 0 and newest then
  local first, top = seq_of(oldest), seq_of(newest)
  if first ~= trimmed + 1 or not top then
    return 'UNREADABLE'
  end
  local edge = math.min(below, top, first + most) - 1
  if edge >= first then
    local id = '0-' .. string.format('%d', edge)
    last = call('XRANGE', feed, id, id)[1]
    if not last or not last[2][10] then
      return 'UNREADABLE'
    end
  end
end

if last then
  below = seq_of(last) + 1
end
if below > announced and (last or most == 0) then
  call('HSET', base, 'announced', string.format('%d', below))
end
if not last then
  return 0
end
local edge = below - 1
call('HSET', base, 'seq', string.format('%d', edge), 'stamp', last[2][10])
return call('XTRIM', feed, 'MINID', '0-' .. string.format('%d', edge + 1))
