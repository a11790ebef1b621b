-- ARGV: 6 the process that claims the session, 7 a token by which a call that is repeated finds its own claim, 8 how long the claim is
-- kept. Returns the fence of the claim and the process that had it before.
local claim = KEYS[6]
local found = redis.call('HMGET', claim, 'token', 'fence', 'process', 'previous')
if found[1] == ARGV[7] then return { tonumber(found[2]), found[4] or '' } end
local fence, previous = math.max(tonumber(found[2] or 0) + 1, now), found[3] or ''
redis.call('HSET', claim, 'token', ARGV[7], 'fence', string.format('%.0f', fence), 'process', ARGV[6], 'previous', previous)
redis.call('PEXPIRE', claim, ARGV[8])
return { fence, previous }
