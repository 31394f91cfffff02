-- Where a log stands. Nothing where there is none, or where it was opened in another life of Redis: then its end may be lost.
--
-- KEYS  state
-- Answers: epoch, seq, number, whole, previous, begin
local known = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'number', 'whole', 'previous', 'begin', 'run')
return known[7] == '@RUN_ID@' and known
