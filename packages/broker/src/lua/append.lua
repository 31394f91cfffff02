-- Appends numbered entries to one or more logs: checks, writes and publishes atomically.
--
-- KEYS  for each log: its stream, its state
-- ARGV  for each log: channel, epoch, number of its first entry, number of the last one or '', count, then for each entry: message index or '',
--       event as JSON. With a last number, the entries stand for all numbers up to it, and are written whole right after the number before the first
-- Returns two values for each log: the outcome, and the number of its last entry in this epoch, which is 0 unless the outcome is ok
--   ok         all entries are in the log now
--   duplicate  all of them were there already: the command was sent twice
--   gap        entries before these are missing, Redis restarted after the log was opened, or another program wrote to it: this epoch cannot
--              be continued
--   missing    there is no log
--   fenced     a newer epoch has begun
--   closed     the turn has ended
--   full       the turn has written more than maxBytes
-- and an error for an entry with a line break, before anything of its log is written: in a push and in a frame, a line break ends the entry
-- The fault bench finds the rules that it switches off by their names.
local maxBytes = tonumber('@MAX_BYTES@')

local function hasLineBreak(text)
  return string.find(text, '\n', 1, true) or string.find(text, '\r', 1, true)
end

local results = {}
local at = 1
for log = 1, #KEYS / 2 do
  local stream, state = KEYS[log * 2 - 1], KEYS[log * 2]
  local channel, epoch, first, given, count = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local entries = at + 5
  at = entries + count * 2
  local last = given or first + count - 1
  for part = entries, at - 1 do
    if hasLineBreak(ARGV[part]) then return redis.error_reply('ERR an entry has a line break') end
  end
  local logEpoch, seq, number, bytes, closed, life = readPosition(state)
  local result
  if not logEpoch then
    result = 'missing'
  elseif logEpoch ~= epoch then -- rule: fence
    result = tonumber(logEpoch) > tonumber(epoch) and 'fenced' or 'gap'
  elseif not isOfThisLife(life) or first > number + 1 then -- rule: gap
    result = 'gap'
  elseif closed == '1' then
    result = 'closed'
  elseif last <= tonumber(number) then -- rule: duplicate
    result = 'duplicate'
  elseif given and first ~= number + 1 then
    result = 'gap'
  elseif tonumber(bytes) > maxBytes then
    result = 'full'
  else
    result = 'ok' -- rule: accept
    local published, indexes = { epoch .. '-' .. seq, '0-0', '' }, {}
    for entry = number - first + 1, count - 1 do -- rule: new entries
      local index, event = ARGV[entries + entry * 2], ARGV[entries + entry * 2 + 1]
      seq = seq + 1
      local id = epoch .. '-' .. seq
      local added = redis.pcall('XADD', stream, id, 'index', index, 'event', event)
      if type(added) == 'table' and added.err then
        -- Another program's entry blocks this id. Only this log fails, not the others in this call.
        if not string.find(added.err, 'equal or smaller', 1, true) then return added end
        result = 'gap'
        break
      end
      bytes = bytes + #event
      indexes[#indexes + 1] = index
      published[#published + 1] = id
      published[#published + 1] = event
    end
    if result == 'ok' then
      writePosition(state, epoch, seq, last, bytes, '0', run)
      published[3] = table.concat(indexes, ',')
      if #indexes > 0 then redis.call('@PUBLISH@', channel, table.concat(published, '\n')) end
    end
  end
  results[log * 2 - 1], results[log * 2] = result, result == 'ok' and tonumber(seq) or 0
end
return results
