-- KEYS[1] is the row of a session, ARGV[1] the digest of the principal. Returns whether it was that principal's.
local row = redis.call('GETRANGE', KEYS[1], 24, 39)
if row ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
