#!lua
-- Deletes a conversation for good, or does nothing. Its head stays as a tombstone, its feed names the deletion.
--
-- KEYS: log head ops old-ops feed conversations. ARGV: path stamp why force idle-since (ms, or empty) replicated.
-- Replies with DELETED (now or before) | NONE (it never was) | KEPT (not idle) | UNREADABLE
--   | BUSY run holder since lease now.
local call = redis.call
local log, head, ops, old_ops, feed, conversations = unpack(KEYS)
local path, stamp, why, force, idle, replicated = unpack(ARGV)

local known = call('HMGET', head, 'last', 'base', 'state', 'open', 'updated')
if known[3] == 'deleted' then
  -- WAIT answers at once on a connection that wrote nothing: what replicas must confirm again must write
  if replicated == '1' then
    call('HSET', head, 'confirmed', 'delete')
  end
  return { 'DELETED' }
end
local last = known[1] or known[2]
if not last then
  return { 'NONE' }
end
local version = string.match(last, '^(%d+)%-%d+$')
local open, updated = tonumber(known[4] or 0), tonumber(known[5] or 0)
if not version or not open or not updated then
  return { 'UNREADABLE' }
end
local time = call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
if idle ~= '' and (open > 0 or updated >= tonumber(idle)) then
  return { 'KEPT' }
end
if open > 0 and force ~= '1' then
  local stored = call('HGETALL', head)
  for i = 1, #stored, 2 do
    local run = string.match(stored[i], '^run:(.*)$')
    if run then
      local since, lease, holder = string.match(stored[i + 1], '^[^|]*|%d|%d+|%d+|(%d+)|(%d+)|%x*|(.*)$')
      if not holder then
        return { 'UNREADABLE' }
      end
      return { 'BUSY', run, holder, since, lease, now }
    end
  end
  return { 'UNREADABLE' }
end

-- No write may fail once another was made: each key must be of its type, and the feed must number on.
call('XLEN', log)
call('HLEN', ops)
call('HLEN', old_ops)
call('ZCARD', conversations)
local newest = call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]
if newest and string.sub(newest[1], 1, 2) ~= '0-' then
  return { 'UNREADABLE' }
end

call('DEL', head)
call('HSET', head, 'last', last, 'state', 'deleted', 'why', why, 'deleted', now)
call('UNLINK', log, ops, old_ops)
call('ZREM', conversations, path)
call('XADD', feed, '0-*', 'c', path, 'f', string.format('%d', version + 1), 'n', 0, 'k', 'conversation-deleted', 's', stamp)
return { 'DELETED' }
