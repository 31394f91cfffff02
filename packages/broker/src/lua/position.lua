-- Shared by every script of a log. The log's position is one field of its state, because every append reads and writes it:
--   epoch, seq: its last cursor, once the epoch has an entry
--   number: of the worker's last append in this epoch
--   bytes: appended in this epoch
--   closed: '1' when no turn is running
--   life: of the Redis that raised the log. Only raising it sets this to the current life
local run = '@LIFE@'

-- A script that was loaded in an earlier life of Redis fails as if Redis did not have it, so that its caller loads it again.
local function requireCurrentLife()
  if currentLife() ~= run then error('NOSCRIPT This script is of an earlier life of Redis') end
end

-- Whether a log was raised in this life of Redis. If not, it may have lost its end.
local function isOfThisLife(life)
  if life == run then return true end
  requireCurrentLife()
  return false
end

-- The six values as text; nothing when there is no log.
local function readPosition(state)
  local position = redis.call('HGET', state, 'position')
  if position then return string.match(position, '^(%d+) (%d+) (%d+) (%d+) (%d) (%w*)$') end
end

local function writePosition(state, epoch, seq, number, bytes, closed, life)
  redis.call('HSET', state, 'position', string.format('%s %d %d %d %s %s', epoch, seq, number, bytes, closed, life))
end

