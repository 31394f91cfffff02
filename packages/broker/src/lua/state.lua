-- Where a log stands. Nothing where there is none, or where it was opened in another life of Redis: then its end may be lost.
--
-- KEYS  state
-- Answers: epoch, seq, number, whole, previous, begin
local epoch, seq, number, _, _, life = readPosition(KEYS[1])
if life ~= run then return end
local known = redis.call('HMGET', KEYS[1], 'whole', 'previous', 'begin')
return { epoch, seq, number, known[1], known[2], known[3] }
