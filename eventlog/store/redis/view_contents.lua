#!lua flags=no-writes
-- All that a view keeps of one conversation, as of one moment.
--
-- KEYS: about, kept, rows, entries, sums. ARGV: path.
-- Replies with nothing, or with what is kept, rows, entries (key packed …), sums (name amount …).
local call = redis.call
local about, kept, rows, entries, sums = unpack(KEYS)
local found = call('HGET', kept, ARGV[1])
if not found or call('EXISTS', about) == 0 then
  return {}
end
return { found, call('LRANGE', rows, 0, -1), call('HGETALL', entries), call('HGETALL', sums) }
