-- ARGV: 3 the digest of an id, 4 its entry, 5 the limit on sessions, 6 on their size and 7 on those of the principal (or -1), 8 when
-- the session is first checked, from now on, 9 how long Redis keeps an index that nothing is added to. Returns the outcome and
-- the number of sessions; a call that is repeated finds its own entry.
local member, entry = ARGV[3], ARGV[4]
local found = redis.call('HGET', entries, member)
local count = redis.call('ZCARD', due)
if found then return { found == entry and 'reserved' or 'duplicate', count } end
local size, owner = struct.unpack('<I4c16', entry)
local sizes = tonumber(redis.call('GET', total_size) or 0)
if count >= tonumber(ARGV[5]) or sizes + size > tonumber(ARGV[6]) then return { 'full', count } end
local own = of_principal(owner)
local quota = tonumber(ARGV[7])
if quota >= 0 and redis.call('SCARD', own) >= quota then return { 'quota', count } end
redis.call('HSET', entries, member, entry)
redis.call('ZADD', due, now + tonumber(ARGV[8]), member)
redis.call('INCRBY', total_size, size)
redis.call('SADD', own, member)
for _, key in ipairs({ due, entries, total_size, own }) do redis.call('PEXPIRE', key, ARGV[9]) end
return { 'reserved', count + 1 }
