-- KEYS: whether a process is there, its inbox, and the size of what waits there. ARGV: 1 the sealed message, 2 the limit on messages
-- and 3 on their size. Returns the outcome.
if redis.call('EXISTS', KEYS[1]) == 0 then return 'gone' end
local size = tonumber(redis.call('GET', KEYS[3]) or 0)
if redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[2]) or size + #ARGV[1] > tonumber(ARGV[3]) then return 'full' end
redis.call('XADD', KEYS[2], '*', 'm', ARGV[1])
redis.call('INCRBY', KEYS[3], #ARGV[1])
local left = redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[2], left)
redis.call('PEXPIRE', KEYS[3], left)
return 'delivered'
