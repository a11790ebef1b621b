-- ARGV[6] is for how long one written use counts, ARGV[7] the digest of the principal, and ARGV[8] the sealed record. Returns
-- whether there was a session to update.
if not is_alive or owner ~= ARGV[7] then return 0 end
local used_until = math.max(used, now + tonumber(ARGV[6]))
local header = struct.pack('<I8I8c8c16', used_until, created, writer, owner)
redis.call('SET', KEYS[1], header .. ARGV[8], 'PX', time_to_live(used_until))
return 1
