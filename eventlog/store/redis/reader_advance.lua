#!lua
-- One step of a reader under its fence, or nothing: its mark, what is handed over, what waits, what is parked.
-- A commit is a step that also writes to further keys. It has an id of its own, and names the commit it follows,
-- so that it is done once however often it is sent, and however late.
--
-- KEYS: the reader, waiting, parked, asked, feed; of a commit then the key that must be there, those it writes, and an
-- empty one that is so again afterwards.
-- ARGV: fence lease (ms) before mark window commit last (both '' unless it is a commit), then lists, each with its
--   length in front: waiting (path record …), no longer waiting (path …), parked (field document …), no longer
--   parked (field …), what was asked and is done (field …), the types of KEYS[6] and those that follow; then writes,
--   each `command key other` with numbers of KEYS, and a list:
--     HSET HDEL RPUSH ZADD ZREM   the list goes to the key
--     DEL                         the key goes
--     ADD                         (name amount …) to the sums in the key and to the totals in the other
--     SUBTRACT                    the sums in the key come off the totals in the other, and the key goes
--     LIST                        (name) is a member of the set in the other while the key is there
-- Replies with FENCED holder | LATE | MOVED mark | GONE | LOST | SUM name, or OK and how many wait, are parked, are
-- asked for.
local call = redis.call
local reader, waiting, parked, asked, feed = unpack(KEYS, 1, 5)
local fence, lease, before, mark, window, commit, last_commit = unpack(ARGV, 1, 7)

local function reply_ok()
  return { 'OK', call('HLEN', waiting), call('HLEN', parked), call('HLEN', asked) }
end

local known = call('HMGET', reader, 'fence', 'holder', 'mark', 'commit')
local at = known[3] or ''
if known[1] ~= fence then
  return { 'FENCED', known[2] or '' }
end
if commit == '' then
  if at ~= before and at ~= mark then
    return { 'MOVED', at }
  end
else
  if known[4] == commit then
    return reply_ok()
  end
  if (known[4] or '') ~= last_commit then
    return { 'LATE' }
  end
  if at ~= before then
    return { 'MOVED', at }
  end
  if call('EXISTS', KEYS[6]) == 0 then
    return { 'GONE' }
  end
end
if mark ~= at and mark ~= '' and mark ~= '0-0' then
  local seq, stamp = string.match(mark, '^(%d+)%-(%d+)$')
  local entry = call('XRANGE', feed, '0-' .. seq, '0-' .. seq)[1]
  if not entry or entry[2][10] ~= stamp then
    return { 'LOST' }
  end
end

local position = 8
local function list()
  local length = tonumber(ARGV[position])
  local first = position + 1
  position = first + length
  return first, position - 1
end
local function each_write(take)
  while position <= #ARGV do
    local command, key, other = ARGV[position], tonumber(ARGV[position + 1]), tonumber(ARGV[position + 2])
    position = position + 3
    local first, last = list()
    take(command, key, other, first, last)
  end
end

-- No write may fail once another was made: each key must be of its type, and no sum may grow too large.
for i = 2, 4 do
  call('HLEN', KEYS[i])
end
for _ = 1, 5 do
  list()
end
local first_type, last_type = list()
for i = 6, 6 + last_type - first_type do
  local kind, wanted = call('TYPE', KEYS[i]).ok, ARGV[first_type + i - 6]
  if kind ~= 'none' and kind ~= wanted then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. kind .. ', not a ' .. wanted)
  end
end

local first_write = position
local most, reach, wrong = 2 ^ 62, {}, nil
local function whole(amount)
  return amount == '0' or string.match(amount, '^%-?[1-9]%d*$')
end
local function reckon(number, name, amount)
  local sums = reach[number] or {}
  reach[number] = sums
  if not sums[name] then
    local stored = call('HGET', KEYS[number], name) or '0'
    sums[name] = whole(stored) and math.abs(tonumber(stored)) or most
  end
  sums[name] = sums[name] + (whole(amount) and math.abs(tonumber(amount)) or most)
  if sums[name] >= most then
    wrong = name
  end
end
each_write(function(command, key, other, first, last)
  if command == 'ADD' then
    for i = first, last, 2 do
      reckon(key, ARGV[i], ARGV[i + 1])
      reckon(other, ARGV[i], ARGV[i + 1])
    end
  elseif command == 'SUBTRACT' then
    local sums = call('HGETALL', KEYS[key])
    for i = 1, #sums, 2 do
      reckon(other, sums[i], sums[i + 1])
    end
  end
end)
if wrong then
  return { 'SUM', wrong }
end

local function write(command, key, first, last)
  for i = first, last, 1000 do
    call(command, key, unpack(ARGV, i, math.min(i + 999, last)))
  end
end
local function total(number, name, amount)
  if call('HINCRBY', KEYS[number], name, amount) == 0 then
    call('HDEL', KEYS[number], name)
  end
end
local function negative(amount)
  return amount == '0' and amount or string.sub(amount, 1, 1) == '-' and string.sub(amount, 2) or '-' .. amount
end

-- Nor may a command be refused then, as it is to a user without the right to it: each is tried before.
if commit ~= '' then
  local trial = #KEYS
  call('DEL', KEYS[trial])
  call('HDEL', KEYS[trial], 'a')
  call('HINCRBY', KEYS[trial], 'a', '1')
  call('HDEL', KEYS[trial], 'a')
  call('HSET', KEYS[trial], 'a', '1')
  call('HDEL', KEYS[trial], 'a')
  call('ZREM', KEYS[trial], 'a')
  call('ZADD', KEYS[trial], '1', 'a')
  call('ZREM', KEYS[trial], 'a')
  call('SREM', KEYS[trial], 'a')
  call('SADD', KEYS[trial], 'a')
  call('SREM', KEYS[trial], 'a')
  call('RPUSH', KEYS[trial], 'a')
  call('DEL', KEYS[trial])
end

local time = call('TIME')
local held = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(lease))
call('HSET', reader, 'lease', held, 'window', window)
if mark ~= at then
  call('HSET', reader, 'mark', mark)
end
if commit ~= '' then
  call('HSET', reader, 'commit', commit)
end
position = 8
write('HSET', waiting, list())
write('HDEL', waiting, list())
write('HSET', parked, list())
local first, last = list()
write('HDEL', parked, first, last)
write('HDEL', asked, first, last)
write('HDEL', asked, list())
position = first_write
each_write(function(command, key, other, first, last)
  if command == 'DEL' then
    call('DEL', KEYS[key])
  elseif command == 'ADD' then
    for i = first, last, 2 do
      call('HINCRBY', KEYS[key], ARGV[i], ARGV[i + 1])
      total(other, ARGV[i], ARGV[i + 1])
    end
  elseif command == 'SUBTRACT' then
    local sums = call('HGETALL', KEYS[key])
    for i = 1, #sums, 2 do
      total(other, sums[i], negative(sums[i + 1]))
    end
    call('DEL', KEYS[key])
  elseif command ~= 'LIST' then
    write(command, KEYS[key], first, last)
  elseif call('EXISTS', KEYS[key]) == 1 then
    call('SADD', KEYS[other], ARGV[first])
  else
    call('SREM', KEYS[other], ARGV[first])
  end
end)
return reply_ok()
