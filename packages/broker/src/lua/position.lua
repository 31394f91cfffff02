-- Shared by every script of a log. The log's position is one field of its state, because every append reads and writes it:
--   epoch, seq: its last cursor, once the epoch has an entry
--   number: of the worker's last append in this epoch
--   bytes: appended in this epoch
--   closed: '1' when no turn is running
--   life: the run id of the Redis that raised the log. Only raising it sets this to the current run id
local run = '@RUN_ID@'

-- The six values as text; nothing when there is no log.
local function readPosition(state)
  local position = redis.call('HGET', state, 'position')
  if position then return string.match(position, '^(%d+) (%d+) (%d+) (%d+) (%d) (%w*)$') end
end

local function writePosition(state, epoch, seq, number, bytes, closed, life)
  redis.call('HSET', state, 'position', string.format('%s %d %d %d %s %s', epoch, seq, number, bytes, closed, life))
end

