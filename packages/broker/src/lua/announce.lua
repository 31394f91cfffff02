-- Writes the server's entries into one log. Each entry has a key and is written once, however many processes announce it.
--
-- KEYS  stream, state
-- ARGV  channel
--       epoch: raises the log to it first (a claim, a reopening, a cancel); '' keeps the log's epoch
--       open: '0' only raises a log that is there and goes on; '1' also opens a log that is absent or stale; 'whole' the same, and a log that is
--             opened now holds the task's whole history
--       first: a log that is opened now leaves the turns before this one to Postgres
--       closed: '1' when no turn is running afterwards, '0' when one is, '' leaves that as it is. Without an epoch, '1' counts only where the
--               turn that began last has its end in the log: a late announcement must not close the log of the turn that runs by now
--       expireMs: when a closed log may go; entries of turns that ended longer ago are trimmed when it is raised
--       then for each entry: key, message index or '', event as JSON
-- Returns the outcome and the last cursor of the log
--   ok       every entry is in the log, now or before, or is about a turn that the log leaves to Postgres
--   missing  there is no log
--   fenced   a newer epoch has begun
--   gap      Redis restarted after the log was opened, or another program wrote to it: it must be opened anew
local stream, state = KEYS[1], KEYS[2]
local channel, epoch, open, first, closed, expireMs = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
-- The clock that expires keys also tells what is old: those of the API processes differ.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local logEpoch, seq, number, bytes, wasClosed, life = readPosition(state)
logEpoch, seq = tonumber(logEpoch), tonumber(seq)
-- The last cursor of an epoch without entries is that of the epoch before it.
local last = not logEpoch and '0-0' or seq == 0 and redis.call('HGET', state, 'previous') or logEpoch .. '-' .. seq
-- The cursor before this call's entries, for subscribers.
local followed = last
-- What is written: first what a trim keeps, then what the caller announces.
local entries = {}
local firstTurn = 0

-- The state has a field for each key: `<epoch>-<seq>@<ms>`.
local function eachKey(visit)
  local fields = redis.call('HGETALL', state)
  for i = 1, #fields, 2 do
    local keyEpoch, keySeq, at = string.match(fields[i + 1], '^(%d+)-(%d+)@(%d+)$')
    if at then visit(fields[i], tonumber(keyEpoch), tonumber(keySeq), tonumber(at)) end
  end
end

-- Whether the turn that started last has no end in the log yet.
local function isTurnOpen()
  local turn = redis.call('HGET', state, 'turn')
  return turn and redis.call('HEXISTS', state, 'finished:' .. turn) == 0
end

-- Removes the entries of turns that ended long ago, and their keys. A turn that was queued before such an end and still waits is announced again
-- under the new epoch, because a reader that loads the log from here must know of it as well.
local function trim()
  -- A queued turn can end while the one before it is running, whose start must stay.
  if isTurnOpen() then return end
  local endEpoch, endSeq = 0, 0
  local function isAfterEnd(keyEpoch, keySeq)
    return keyEpoch > endEpoch or (keyEpoch == endEpoch and keySeq > endSeq)
  end
  eachKey(function(key, keyEpoch, keySeq, at)
    local isOld = string.sub(key, 1, 9) == 'finished:' and at <= nowMs - expireMs
    if isOld and isAfterEnd(keyEpoch, keySeq) then endEpoch, endSeq = keyEpoch, keySeq end
  end)
  if endEpoch == 0 then return end
  local waiting = {}
  eachKey(function(key, keyEpoch, keySeq)
    if isAfterEnd(keyEpoch, keySeq) then return end
    local turn = string.match(key, '^queued:(%d+)$')
    local id = keyEpoch .. '-' .. keySeq
    local found = turn and redis.call('HEXISTS', state, 'finished:' .. turn) == 0 and redis.call('XRANGE', stream, id, id)[1]
    if found then waiting[#waiting + 1] = { turn = tonumber(turn), key = key, index = found[2][2], event = found[2][4] } end
  end)
  eachKey(function(key, keyEpoch, keySeq)
    if not isAfterEnd(keyEpoch, keySeq) then redis.call('HDEL', state, key) end
  end)
  redis.call('XTRIM', stream, 'MINID', endEpoch .. '-' .. (endSeq + 1))
  redis.call('HSET', state, 'whole', '0')
  table.sort(waiting, function(a, b) return a.turn < b.turn end)
  for _, entry in ipairs(waiting) do entries[#entries + 1] = entry end
end

-- After a restart of Redis the log may have lost its end, and nothing shows that. So all keys are removed, and the server announces again what
-- still matters. The entries stay, because they may be all that is left of a turn's output.
local function beginAnew()
  eachKey(function(key) redis.call('HDEL', state, key) end)
  redis.call('HDEL', state, 'turn')
  last, followed = epoch .. '-0', '0-0'
  redis.call('HSET', state, 'begin', last, 'whole', '0', 'first', first)
end

-- Whether the log has nothing to write about a turn: it leaves the turn to Postgres, or has its end already.
local function isDone(key)
  local kind, turn = string.match(key, '^(%a+):(%d+)')
  if kind == 'started' or kind == 'kept' or kind == 'state' or kind == 'child' then return false end
  return tonumber(turn) < firstTurn or (kind ~= 'finished' and redis.call('HEXISTS', state, 'finished:' .. turn) == 1)
end

-- An entry of another program with a higher id would block every write, so the log starts again.
local function removeForeign()
  local top = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  if not top or tonumber(string.match(top[1], '^%d+')) < epoch then return end
  redis.call('DEL', stream)
  redis.call('HSET', state, 'whole', '0')
end

if epoch and logEpoch and logEpoch > epoch then return { 'fenced', last } end
if not logEpoch and (not epoch or open == '0') then return { 'missing', last } end
if logEpoch and not isOfThisLife(life) and (not epoch or open == '0' or logEpoch == epoch) then return { 'gap', last } end
if epoch and (not logEpoch or logEpoch < epoch) then
  requireCurrentLife()
  if logEpoch and life ~= run then
    beginAnew()
  elseif logEpoch then
    trim()
  else
    redis.call('HSET', state, 'whole', open == 'whole' and '1' or '0', 'first', first)
  end
  removeForeign()
  logEpoch, seq, number, bytes, wasClosed, life = epoch, 0, 0, 0, '1', run
  redis.call('HSET', state, 'previous', last)
  writePosition(state, logEpoch, seq, number, bytes, wasClosed, life)
  redis.call('PERSIST', stream)
  redis.call('PERSIST', state)
end
firstTurn = tonumber(redis.call('HGET', state, 'first') or '') or 0

for i = 7, #ARGV, 3 do entries[#entries + 1] = { key = ARGV[i], index = ARGV[i + 1], event = ARGV[i + 2] } end
local published, indexes = { followed, '0-0', '' }, {}
for _, entry in ipairs(entries) do
  local key, event = entry.key, entry.event
  if redis.call('HEXISTS', state, key) == 0 and not isDone(key) then
    seq = seq + 1
    local id = logEpoch .. '-' .. seq
    local added = redis.pcall('XADD', stream, id, 'index', entry.index, 'event', event)
    if type(added) == 'table' and added.err then
      return string.find(added.err, 'equal or smaller', 1, true) and { 'gap', last } or added
    end
    redis.call('HSET', state, key, id .. '@' .. nowMs)
    if string.sub(key, 1, 8) == 'started:' then redis.call('HSET', state, 'turn', cjson.decode(event).turn) end
    indexes[#indexes + 1] = entry.index
    published[#published + 1] = id
    published[#published + 1] = event
  end
end
if closed == '1' and not epoch and isTurnOpen() then closed = '' end
writePosition(state, logEpoch, seq, number, bytes, closed ~= '' and closed or wasClosed, life)
if closed == '1' then
  redis.call('PEXPIRE', stream, expireMs)
  redis.call('PEXPIRE', state, expireMs)
elseif closed == '0' then
  redis.call('PERSIST', stream)
  redis.call('PERSIST', state)
end
if #indexes == 0 then return { 'ok', last } end
published[3] = table.concat(indexes, ',')
redis.call('@PUBLISH@', channel, table.concat(published, '\n'))
return { 'ok', published[#published - 1] }
