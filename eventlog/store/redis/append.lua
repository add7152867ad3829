#!lua
-- Appends the events of one operation to a conversation, or nothing.
--
-- A script's writes are not rolled back: every check comes before the first write, in the order
-- that eventlog/store/port.py states. Replies with what it did, what had been done, or why not:
--   OK first last-before | UNREADABLE | FOUND first entries | DUPLICATE first count stamp | DELETED | TRUNCATED base | LOST last | UNKNOWN
--   CLOSED | FENCED holder since | BUSY run holder since lease now | ANSWERED call version
--   CONFLICT last | LIMIT
--
-- ARGV: the operation, its documents, then what only an append of a run or an edit has:
--   step run fence lease mode exclusive holder last_call closes answers alone superseded-runs…
local call = redis.call
local log, head, ops, old_ops, feed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local operation, digest, stamp, cursor, expected, flag, replicated, generation, path, kinds, id_prefix, events =
    unpack(ARGV, 1, 12)
local count = tonumber(events)
local FIRST = 12
local extra = flag == 'over' and FIRST or FIRST + count
local step, run = ARGV[extra + 1], ARGV[extra + 2]

local function version_of(id)
  return tonumber(string.match(id, '^%d+'))
end

local known = call('HMGET', head, 'last', 'base', 'state', 'evicted', 'rotated', 'open', 'run:' .. (run or ''))
local base = known[2] or '0-0'
local last = known[1] or base
local own = run and known[7]
local version = version_of(last)
if not version or not version_of(base) then
  return { 'UNREADABLE' }
end

local function confirm()
  -- WAIT answers at once on a connection that wrote nothing: what replicas must confirm again must write
  if replicated == '1' then
    call('HSET', head, 'confirmed', operation)
  end
end

-- 1. a retry is recognised before anything can refuse it
local first = nil
local record = call('HGET', ops, operation) or call('HGET', old_ops, operation)
if record then
  local at, n, s, d = string.match(record, '^(%d+):(%d+):(%d+):(.*)$')
  if not d then
    return { 'UNREADABLE' }
  elseif d == digest then
    confirm()
    return { 'DUPLICATE', at, n, s }
  end
  first = tonumber(at)
elseif expected ~= 'any' and expected ~= 'exists' then
  local after = expected == 'none' and 0 or version_of(expected)
  if version > after then
    local entry = call('XRANGE', log, after + 1, after + 1)[1]
    if entry and string.sub(entry[2][2], 1, #id_prefix) == id_prefix then
      first = after + 1
    end
  end
end
if not first and step == 'start' and own then
  first = tonumber(string.match(own, '^[^|]*|%d|(%d+)') or 1)
end
if first then
  confirm()
  return { 'FOUND', first, call('XRANGE', log, first, first + count) }
end

-- 2. a deleted conversation
if known[3] == 'deleted' then
  return { 'DELETED' }
end

-- 3. the caller's cursor
if cursor ~= last and cursor ~= base and version_of(cursor) > 0 then
  if version_of(cursor) <= version_of(base) then
    return { 'TRUNCATED', base }
  end
  if #call('XRANGE', log, cursor, cursor) == 0 then
    return { 'LOST', last }
  end
end
if flag == 'retry' and known[4] and tonumber(known[4]) > version_of(cursor) then
  return { 'UNKNOWN' }
end

-- 4. the runs
local time = call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
local updates, gone = nil, nil
if step then
  local fence, lease, mode, exclusive, holder, last_call, closes, answers, alone = unpack(ARGV, extra + 3, extra + 11)
  local open = tonumber(known[6] or 0)
  updates, gone = {}, {}

  local function set(name, value)
    updates[#updates + 1] = name
    updates[#updates + 1] = value
  end

  local function unpack_run(packed)
    local m, x, at, number, since, held, f, h =
        string.match(packed, '^([^|]*)|(%d)|(%d+)|(%d+)|(%d+)|(%d+)|(%x*)|(.*)$')
    return { mode = m, exclusive = x, first = at, call = number, since = since, lease = held, fence = f, holder = h }
  end

  local function busy(name, r)
    return { 'BUSY', name, r.holder, r.since, r.lease, now }
  end

  local superseded = {}
  for i = extra + 12, #ARGV do
    superseded[ARGV[i]] = true
  end
  local r = own and unpack_run(own)
  if own and not r.holder then
    return { 'UNREADABLE' }
  end
  if step ~= 'start' and step ~= 'none' then
    if not r then
      return { 'CLOSED' }
    elseif step == 'go-on' and r.fence ~= fence then
      return { 'FENCED', r.holder, r.since }
    elseif step == 'resume' and tonumber(r.lease) > tonumber(now) then
      return busy(run, r)
    end
  end
  if open > 0 and (step == 'start' or alone == '1') then
    local stored = call('HGETALL', head)
    for i = 1, #stored, 2 do
      local name = string.match(stored[i], '^run:(.*)$')
      if name and not superseded[name] then
        local other = unpack_run(stored[i + 1])
        if alone == '1' or exclusive == '1' or other.exclusive == '1' then
          return busy(name, other)
        end
      end
    end
  end
  for answered in string.gmatch(answers, '%d+') do
    local name = 'answer:' .. answered .. ':' .. run
    local result = call('HGET', head, name)
    if result then
      return { 'ANSWERED', answered, result }
    end
    if closes ~= '1' then
      set(name, version + 1)
    end
  end

  -- what the head will say of the runs, once all checks have passed
  for name in pairs(superseded) do
    if call('HEXISTS', head, 'run:' .. name) == 1 then
      gone[name], open = true, open - 1
    end
  end
  if closes == '1' then
    if r then
      gone[run], open = true, open - 1
    end
  elseif step ~= 'none' then
    if step == 'start' then
      r, open = { mode = mode, exclusive = exclusive, first = version + 1, call = '0' }, open + 1
    end
    if step ~= 'go-on' then
      r.fence, r.holder, r.since = fence, holder, now
    end
    if tonumber(last_call) > tonumber(r.call) then
      r.call = last_call
    end
    local held = string.format('%d', now + lease)
    set('run:' .. run, table.concat({ r.mode, r.exclusive, r.first, r.call, r.since, held, r.fence, r.holder }, '|'))
  end
  set('open', open)
end

-- 5. the expected version
if expected ~= 'any' and expected ~= last
    and not (expected == 'none' and version == 0) and not (expected == 'exists' and version > 0) then
  return { 'CONFLICT', last }
end

-- 6. the limits
if flag == 'over' then
  return { 'LIMIT' }
end

-- No write may fail once another was made: each key must be of its type (that of the log is met by
-- the first write, those of the head and the operations were read), and the feed must number on.
local newest = call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]
if newest and string.sub(newest[1], 1, 2) ~= '0-' then
  return { 'UNREADABLE' }
end
local rotates = tonumber(generation) <= call('HLEN', ops)
local function rotate()
  call('RENAME', ops, old_ops)
  call('HSET', head, 'rotated', version, 'evicted', known[5] or 0)
end
-- Nor may a command be refused then, as it is to a user without the right to it. So a first append gives each where it
-- changes nothing or is taken back, and what comes seldom comes before the events.
if version == 0 then
  call('ZADD', KEYS[6], 'XX', 'GT', '-inf', path)
  call('HDEL', head, '')
  call('HSET', head, '', '')
  call('HDEL', head, '')
  if call('EXISTS', ops) == 0 then
    local tried = redis.pcall('RENAME', ops, old_ops)
    if not string.find(tried.err, 'no such key', 1, true) then
      return tried
    end
  end
elseif gone and next(gone) then
  call('HDEL', head, '')
end
if rotates then
  local newest_event = call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
  if newest_event and newest_event[1] == last then
    rotate()
    rotates = false
  end
end

for i = 1, count do
  call('XADD', log, (version + i) .. '-' .. stamp, 'e', ARGV[FIRST + i])
end

if gone and next(gone) then
  for _, name in ipairs(call('HKEYS', head)) do
    local owner = string.match(name, '^run:(.*)$') or string.match(name, '^answer:%d+:(.*)$')
    if owner and gone[owner] then
      call('HDEL', head, name)
    end
  end
end
if updates then
  for i = 1, #updates, 1000 do
    call('HSET', head, unpack(updates, i, math.min(i + 999, #updates)))
  end
end

-- The record of operations is bounded: a full generation becomes the old one, whose records go.
if rotates then
  rotate()
end
call('HSET', ops, operation, (version + 1) .. ':' .. events .. ':' .. stamp .. ':' .. digest)
call('HSET', head, 'last', (version + count) .. '-' .. stamp, 'updated', now)
local named = call('XADD', feed, '0-*', 'c', path, 'f', version + 1, 'n', events, 'k', kinds, 's', stamp)
if version == 0 then
  -- by the number of its first feed entry: the order of first appends
  call('ZADD', KEYS[6], 'NX', string.sub(named, 3), path)
end
return { 'OK', version + 1, last }
