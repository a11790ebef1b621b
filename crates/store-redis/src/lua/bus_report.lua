-- KEYS: whether a process is there, its inbox, and the size of what waits there. ARGV[1]: for how long the process counts as there.
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[1])
return 1
