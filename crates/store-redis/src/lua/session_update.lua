-- ARGV[6] is for how long one written use counts, ARGV[7] the digest of the principal, ARGV[8] the sealed record, and ARGV[9] the
-- version to replace, or empty for any. Returns 0 without such a session, 2 if it has another version, else 1; a call that is
-- repeated finds its own record.
if not is_alive or owner ~= ARGV[7] then return 0 end
if sealed == ARGV[8] then return 1 end
if ARGV[9] ~= '' and string.sub(sealed, 1, 8) ~= ARGV[9] then return 2 end
local used_until = math.max(used, now + tonumber(ARGV[6]))
local header = struct.pack('<I8I8c8c16', used_until, created, used_by, owner)
redis.call('SET', KEYS[1], header .. ARGV[8], 'PX', time_to_live(used_until))
return 1
