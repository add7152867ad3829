#!lua
-- Appends the events of one operation to a conversation, or nothing.
--
-- A script's writes are not rolled back: every check comes before the first write, in the order
-- that eventlog/store/port.py states. Replies with the first version, or with a refusal:
--   FOUND entries | DUPLICATE first count stamp | DELETED | TRUNCATED base | LOST last | UNKNOWN
--   CLOSED | FENCED holder since | BUSY run holder since lease now | ANSWERED call version
--   CONFLICT last | LIMIT
local log, head, ops, feed, conversations = unpack(KEYS)
local operation, digest, stamp, retry, cursor, expected, window, count, id_prefix, path, kinds, over,
      step, run, fence, lease, mode, exclusive, holder, last_call, closes, answers, alone, superseding = unpack(ARGV, 1, 24)
local FIRST_NAME = 25
count, window, superseding = tonumber(count), tonumber(window), tonumber(superseding)

local function version_of(id)
  return tonumber(string.match(id, '^%d+'))
end

local function read_run(packed)
  local m, x, first, call, since, held_until, f, h = string.match(packed, '^([^|]*)|(%d)|(%d+)|(%d+)|(%d+)|(%d+)|(%x*)|(.*)$')
  return { mode = m, exclusive = x, first = first, call = call, since = since, lease = held_until, fence = f, holder = h }
end

local function open_runs()
  local found = {}
  local fields = redis.call('HGETALL', head)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 4) == 'run:' then
      found[string.sub(fields[i], 5)] = fields[i + 1]
    end
  end
  return found
end

local known = redis.call('HMGET', head, 'last', 'base', 'state', 'evicted', 'open', 'run:' .. run)
local last, base, state, evicted = known[1] or '0-0', known[2] or '0-0', known[3], known[4]
local open, own = tonumber(known[5] or '0'), known[6]
if last == '0-0' then
  last = base
end
local version = version_of(last)

-- 1. a retry is recognised before anything can refuse it
local record = redis.call('HGET', ops, 'o' .. operation)
local first = nil
if record then
  local at, n, s, d = string.match(record, '^(%d+):(%d+):(%d+):(.*)$')
  if d == digest then
    return { 'DUPLICATE', at, n, s }
  end
  first = tonumber(at)
elseif expected ~= 'any' and expected ~= 'exists' then
  local after = expected == 'none' and 0 or version_of(expected)
  if version > after then
    local entry = redis.call('XRANGE', log, after + 1, after + 1)[1]
    if entry and string.sub(entry[2][2], 1, #id_prefix) == id_prefix then
      first = after + 1
    end
  end
end
if not first and step == 'start' and own then
  first = tonumber(read_run(own).first)
end
if first then
  return { 'FOUND', redis.call('XRANGE', log, first, first + count) }
end

-- 2. a deleted conversation
if state == 'deleted' then
  return { 'DELETED' }
end

-- 3. the caller's cursor
if cursor ~= last and cursor ~= base and version_of(cursor) > 0 then
  if version_of(cursor) <= version_of(base) then
    return { 'TRUNCATED', base }
  end
  if #redis.call('XRANGE', log, cursor, cursor) == 0 then
    return { 'LOST', last }
  end
end
if retry == '1' and evicted and tonumber(evicted) > version_of(cursor) then
  return { 'UNKNOWN' }
end

-- 4. the runs
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local superseded = {}
for i = FIRST_NAME, FIRST_NAME + superseding - 1 do
  superseded[ARGV[i]] = true
end

local function busy(name, packed)
  local r = read_run(packed)
  return { 'BUSY', name, r.holder, r.since, r.lease, string.format('%d', now) }
end

if step == 'start' or alone == '1' then
  if open > 0 then
    for name, packed in pairs(open_runs()) do
      local clash = alone == '1' or exclusive == '1' or read_run(packed).exclusive == '1'
      if clash and not superseded[name] then
        return busy(name, packed)
      end
    end
  end
end
if step ~= '' and step ~= 'start' then
  if not own then
    return { 'CLOSED' }
  end
  local r = read_run(own)
  if step == 'go-on' and r.fence ~= fence then
    return { 'FENCED', r.holder, r.since }
  elseif step == 'resume' and tonumber(r.lease) > now then
    return busy(run, own)
  end
end
for call in string.gmatch(answers, '%d+') do
  local result = redis.call('HGET', head, 'answer:' .. call .. ':' .. run)
  if result then
    return { 'ANSWERED', call, result }
  end
end

-- 5. the expected version
if (expected == 'none' and version > 0) or (expected == 'exists' and version == 0)
    or (string.match(expected, '^%d') and expected ~= last) then
  return { 'CONFLICT', last }
end

-- 6. the limits
if over == '1' then
  return { 'LIMIT' }
end

-- every key must hold what it should before the first write
redis.call('XLEN', log)
redis.call('XLEN', feed)
if version == 0 then
  redis.call('ZCARD', conversations)
end

for i = 1, count do
  redis.call('XADD', log, (version + i) .. '-' .. stamp, 'e', ARGV[FIRST_NAME + superseding + i - 1])
end

local fields = { 'last', (version + count) .. '-' .. stamp, 'updated', string.format('%d', now) }
local function set(name, value)
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end

local gone = {}
if closes == '1' and step ~= 'start' then
  gone[run] = true
end
for name in pairs(superseded) do
  if redis.call('HEXISTS', head, 'run:' .. name) == 1 then
    gone[name] = true
  end
end
if next(gone) then
  for _, name in ipairs(redis.call('HKEYS', head)) do
    local owner = string.match(name, '^run:(.*)$') or string.match(name, '^answer:%d+:(.*)$')
    if owner and gone[owner] then
      redis.call('HDEL', head, name)
    end
  end
  for _ in pairs(gone) do
    open = open - 1
  end
  set('open', open)
end
if step == 'start' then
  if closes ~= '1' then
    set('open', open + 1)
    local until_ms = string.format('%d', now + lease)
    set('run:' .. run, table.concat({ mode, exclusive, version + 1, last_call, string.format('%d', now), until_ms, fence, holder }, '|'))
  end
elseif step ~= '' and not gone[run] then
  local r = read_run(own)
  if step ~= 'go-on' then
    r.fence, r.holder, r.since = fence, holder, string.format('%d', now)
  end
  if last_call ~= '0' then
    r.call = last_call
  end
  local until_ms = string.format('%d', now + lease)
  set('run:' .. run, table.concat({ r.mode, r.exclusive, r.first, r.call, r.since, until_ms, r.fence, r.holder }, '|'))
end
if step ~= '' and closes ~= '1' then
  for call in string.gmatch(answers, '%d+') do
    set('answer:' .. call .. ':' .. run, version + 1)
  end
end

-- the record of operations is bounded: each slot holds one, and a slot is used again a window later
local slot = '#' .. (version + 1) % window
local old = redis.call('HGET', ops, slot)
if old then
  local at = string.match(redis.call('HGET', ops, 'o' .. old) or '0', '^%d+')
  redis.call('HDEL', ops, 'o' .. old)
  if tonumber(at) > tonumber(evicted or '0') then
    set('evicted', at)
  end
end
redis.call('HSET', ops, slot, operation, 'o' .. operation, (version + 1) .. ':' .. count .. ':' .. stamp .. ':' .. digest)
redis.call('HSET', head, unpack(fields))
redis.call('XADD', feed, '0-*', 'c', path, 'f', version + 1, 'n', count, 'k', kinds, 's', stamp)
if version == 0 then
  redis.call('ZADD', conversations, 'NX', now, path)
end
return version + 1
