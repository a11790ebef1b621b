-- KEYS[1] describes the store, ARGV[1] is the format that this build writes and ARGV[2] a sealed description. Returns what the
-- store has, which is the same if it is new.
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('HSET', KEYS[1], 'format', ARGV[1], 'seal', ARGV[2]) end
return redis.call('HMGET', KEYS[1], 'format', 'seal')
