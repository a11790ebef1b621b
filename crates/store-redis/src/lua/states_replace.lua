-- ARGV: 6 the digest of the handle, 7 that of the principal, 8 the version to replace, 9 the sealed value. A call that is repeated
-- finds its own value.
local state = read(ARGV[6])
if not state or state.owner ~= ARGV[7] then return 'missing' end
state.used = math.max(state.used, now)
local expected = tonumber(ARGV[8])
local outcome = 'mismatch'
if state.version == expected then
  state.version, state.sealed, outcome = expected + 1, ARGV[9], 'done'
elseif state.version == expected + 1 and state.sealed == ARGV[9] then
  outcome = 'done'
end
write(ARGV[6], state, outcome ~= 'done')
return outcome
