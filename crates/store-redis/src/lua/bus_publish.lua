-- KEYS: the messages to all processes, and how many there were. ARGV: 1 the sealed message, 2 how many are kept. A reader finds by the
-- number that it has lost some.
local number = redis.call('INCR', KEYS[2])
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'm', ARGV[1], 'n', number)
redis.call('PEXPIRE', KEYS[1], 86400000)
redis.call('PEXPIRE', KEYS[2], 86400000)
return number
