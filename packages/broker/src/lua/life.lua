-- The life of this Redis: it changes with a restart (run id) and with a promotion (replication id), because both may have lost the last writes. Eight
-- characters of each are enough, and keep a log's state small enough for Redis's compact encoding.
local function currentLife()
  local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
  local function begin(name) return string.sub(string.match(info, name .. ':(%w+)') or '', 1, 8) end
  return begin('run_id') .. begin('master_replid')
end

