#!lua flags=no-writes
-- One conversation in a view, and the log behind it, as of one moment.
--
-- KEYS: about, kept, rows, log. ARGV: path, the first and the last row, how many events at most.
-- Replies with whether the view is there, what is kept ('' for nothing), rows, how many there are, entries of the log.
local call = redis.call
local about, kept, rows, log = unpack(KEYS)
local path, first, last, count = unpack(ARGV)
if call('EXISTS', about) == 0 then
  return { 0, '', {}, 0, call('XRANGE', log, '-', '+', 'COUNT', count) }
end
local found = call('HGET', kept, path) or ''
local from = string.match(found, '^(%d+)%-') or '-'
return {
  1, found, call('LRANGE', rows, first, last), call('LLEN', rows), call('XRANGE', log, from, '+', 'COUNT', count),
}
