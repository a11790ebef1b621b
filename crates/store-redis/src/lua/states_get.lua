-- ARGV: 6 the digest of the handle, 7 that of the principal. Returns the version and the sealed value.
local state = read(ARGV[6])
if not state or state.owner ~= ARGV[7] then return false end
state.used = math.max(state.used, now)
write(ARGV[6], state, true)
return { state.version, state.sealed }
