-- ARGV: 3 the digest of an id, 4 the digest of its principal. Returns whether there was such an entry, and the number of sessions.
local entry = redis.call('HGET', entries, ARGV[3])
local is_own = entry and string.sub(entry, 5, 20) == ARGV[4]
if is_own then remove(ARGV[3]) end
return { is_own and 1 or 0, redis.call('ZCARD', due) }
