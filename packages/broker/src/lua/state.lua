-- Where a log stands. Nothing where there is none.
--
-- KEYS  state
-- Answers: epoch, seq, number, stale ('1' when it was raised in another life of Redis: its end may be lost), whole, previous, begin
local epoch, seq, number, _, _, life = readPosition(KEYS[1])
if not epoch then return end
local known = redis.call('HMGET', KEYS[1], 'whole', 'previous', 'begin')
return { epoch, seq, number, life == run and '0' or '1', known[1], known[2], known[3] }
