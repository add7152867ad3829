#!lua
-- Removes all that a view keeps of one conversation, whoever holds its partition.
--
-- KEYS: kept, rows, entries, sums, totals, totalled, indexes, then the index of each list of members.
-- ARGV: path tenant, then lists, each with its length in front: the entries as they were read (key packed …), and
--   for each index its name and its lines to remove (name member …).
-- Replies with AGAIN when the entries are others by now, SUM name, or OK.
local call = redis.call
local kept, rows, entries, sums, totals, totalled, indexes = unpack(KEYS, 1, 7)
local path, tenant = ARGV[1], ARGV[2]

local types = { 'hash', 'list', 'hash', 'hash', 'hash', 'set', 'set' }
for i = 1, #KEYS do
  local kind, wanted = call('TYPE', KEYS[i]).ok, types[i] or 'zset'
  if kind ~= 'none' and kind ~= wanted then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. kind .. ', not a ' .. wanted)
  end
end
local length = tonumber(ARGV[3])
if call('HLEN', entries) ~= length / 2 then
  return { 'AGAIN' }
end
for i = 4, 3 + length, 2 do
  if call('HGET', entries, ARGV[i]) ~= ARGV[i + 1] then
    return { 'AGAIN' }
  end
end

local function magnitude(amount)
  local whole = amount == '0' or string.match(amount, '^%-?[1-9]%d*$')
  return whole and math.abs(tonumber(amount)) or 2 ^ 62
end
local amounts = call('HGETALL', sums)
for i = 1, #amounts, 2 do
  local stored = call('HGET', totals, amounts[i]) or '0'
  if magnitude(stored) + magnitude(amounts[i + 1]) >= 2 ^ 62 then
    return { 'SUM', amounts[i] }
  end
end

-- A command that the user may not give is refused half way; so what cannot be done twice comes last but for its end.
local position = 4 + length
for number = 8, #KEYS do
  local name, first = ARGV[position + 1], position + 2
  local last = position + tonumber(ARGV[position])
  for i = first, last, 1000 do
    call('ZREM', KEYS[number], unpack(ARGV, i, math.min(i + 999, last)))
  end
  if call('EXISTS', KEYS[number]) == 0 then
    call('SREM', indexes, name)
  end
  position = last + 1
end
call('HDEL', kept, path)
call('DEL', rows)
call('DEL', entries)
for i = 1, #amounts, 2 do
  local amount = amounts[i + 1]
  local negative = amount == '0' and amount or string.sub(amount, 1, 1) == '-' and string.sub(amount, 2) or '-' .. amount
  if call('HINCRBY', totals, amounts[i], negative) == 0 then
    call('HDEL', totals, amounts[i])
  end
end
call('DEL', sums)
-- What was below 0 leaves a total where there was none.
if call('EXISTS', totals) == 1 then
  call('SADD', totalled, tenant)
else
  call('SREM', totalled, tenant)
end
return { 'OK' }
