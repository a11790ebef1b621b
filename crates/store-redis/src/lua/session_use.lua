-- ARGV[6] is for how long one written use counts, ARGV[7] the digest of the principal, or empty for any, and ARGV[8] whether the
-- record is wanted, ARGV[9] the version that the caller has, which is the beginning of the sealed record: its nonce. Returns the
-- record, unless the caller has it, and when it was created by the caller's clock.
if not is_alive or (ARGV[7] ~= '' and owner ~= ARGV[7]) then return false end
if now > used then
  local used_until = now + tonumber(ARGV[6])
  redis.call('SETRANGE', KEYS[1], 0, struct.pack('<I8I8c8', used_until, created, used_by))
  redis.call('PEXPIRE', KEYS[1], time_to_live(used_until))
elseif used_by ~= last_writer then
  redis.call('SETRANGE', KEYS[1], 16, used_by)
end
local is_wanted = ARGV[8] == '1' and string.sub(sealed, 1, 8) ~= ARGV[9]
return { is_wanted and sealed or '', created - skew }
