-- Before every script of a log. Where a log stands is one field of its state, because every append reads and writes it:
--   epoch, seq: its last cursor, once the epoch has an entry
--   number: that of the worker's last append in this epoch
--   bytes: what was appended in it
--   closed: '1' when no turn is running
--   life: that of Redis in which it was raised. Only raising it makes a log one of this life
local run = '@RUN_ID@'

-- The six, as text; nothing where there is no log.
local function readPosition(state)
  local position = redis.call('HGET', state, 'position')
  if position then return string.match(position, '^(%d+) (%d+) (%d+) (%d+) (%d) (%w*)$') end
end

local function writePosition(state, epoch, seq, number, bytes, closed, life)
  redis.call('HSET', state, 'position', string.format('%s %d %d %d %s %s', epoch, seq, number, bytes, closed, life))
end

