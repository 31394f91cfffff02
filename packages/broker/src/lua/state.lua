-- The position of a log; nothing when there is no log.
--
-- KEYS  state
-- Returns epoch, seq, number, stale ('1' when Redis restarted after the log was raised: its end may be lost), whole, previous, begin
local epoch, seq, number, _, _, life = readPosition(KEYS[1])
if not epoch then return end
local known = redis.call('HMGET', KEYS[1], 'whole', 'previous', 'begin')
return { epoch, seq, number, isOfThisLife(life) and '0' or '1', known[1], known[2], known[3] }
