-- Appends the numbered entries of one or more workers' logs: check, write, publish, all at once.
--
-- KEYS  for each log: its stream, its state
-- ARGV  for each log: channel, epoch, number of its first entry, count, then for each entry: message index or '', event as JSON
-- Answers for each log two items: what happened, the last cursor of the log
--   ok         all entries are in the log now
--   duplicate  all of them were there already: a command that was sent twice
--   gap        entries before these are missing, the log was opened in another life of Redis, or somebody else wrote to it: nobody continues
--              this epoch
--   missing    there is no log
--   fenced     a newer epoch has begun
--   closed     the turn has ended
--   full       the turn has said more than maxBytes
local run = '@RUN_ID@'
local maxBytes = tonumber('@MAX_BYTES@')
local answers = {}
local at = 1
for log = 0, #KEYS / 2 - 1 do
  local stream, state = KEYS[log * 2 + 1], KEYS[log * 2 + 2]
  local channel, epoch, first, count = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local entries = at + 4
  at = entries + count * 2
  local known = redis.call('HMGET', state, 'epoch', 'seq', 'number', 'run', 'bytes', 'closed')
  local logEpoch, seq, number = tonumber(known[1]), tonumber(known[2]), tonumber(known[3])
  local answer
  if not logEpoch then
    answer = 'missing'
  elseif logEpoch > epoch then
    answer = 'fenced'
  elseif logEpoch < epoch or known[4] ~= run or first > number + 1 then
    answer = 'gap'
  elseif known[6] == '1' then
    answer = 'closed'
  elseif first + count - 1 <= number then
    answer = 'duplicate'
  elseif tonumber(known[5]) > maxBytes then
    answer = 'full'
  else
    answer = 'ok'
    local bytes = tonumber(known[5])
    local published = { logEpoch .. '-' .. seq }
    for entry = number - first + 1, count - 1 do
      local index, event = ARGV[entries + entry * 2], ARGV[entries + entry * 2 + 1]
      seq = seq + 1
      local id = logEpoch .. '-' .. seq
      local added = redis.pcall('XADD', stream, id, 'index', index, 'event', event)
      if type(added) == 'table' and added.err then
        -- An entry of somebody else stands where ours belongs. That is this log's trouble, not that of the others in this call.
        if not string.find(added.err, 'equal or smaller', 1, true) then return added end
        answer = 'gap'
        break
      end
      bytes = bytes + #event
      published[#published + 1] = id
      published[#published + 1] = event
    end
    if answer == 'ok' then
      redis.call('HSET', state, 'seq', seq, 'number', first + count - 1, 'bytes', bytes)
      redis.call('PUBLISH', channel, table.concat(published, '\n'))
    end
  end
  answers[#answers + 1] = answer
  answers[#answers + 1] = logEpoch and (logEpoch .. '-' .. seq) or '0-0'
end
return answers
