-- ARGV[6] is when the session was created by the caller's clock, ARGV[7] the digest of its principal, ARGV[8] the sealed record.
-- Returns whether it is stored now; a call that is repeated finds its own row.
if row then return sealed == ARGV[8] and 1 or 0 end
created = tonumber(ARGV[6]) + skew
local header = struct.pack('<I8I8c8c16', now, created, writer, ARGV[7])
redis.call('SET', KEYS[1], header .. ARGV[8], 'PX', time_to_live(now))
return 1
