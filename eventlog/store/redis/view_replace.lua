#!lua
-- Puts a projection's record in place of the one before, if that still is the one. A record is stored as <id>|<record>,
-- where the id is that of the attempt: so a repetition is told from another's attempt with the same content.
--
-- KEYS: views. ARGV: projection, id, '+' and the record before, '+' and the new one; '' for none.
-- Replies with whether it was done: 1 or 0.
local call = redis.call
local views = unpack(KEYS)
local projection, id, before, after = unpack(ARGV)
local stored = call('HGET', views, projection)
local found = stored and string.match(stored, '^[^|]*')
if found == id or (after == '' and not stored) then
  return 1
end
if (stored and '+' .. string.sub(stored, #found + 2) or '') ~= before then
  return 0
end
if after == '' then
  call('HDEL', views, projection)
else
  call('HSET', views, projection, id .. '|' .. string.sub(after, 2))
end
return 1
