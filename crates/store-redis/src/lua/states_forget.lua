-- ARGV[6] is the digest of the handle. Returns the number of states.
local state = read(ARGV[6])
if state then remove(ARGV[6] .. state.owner) end
return redis.call('ZCARD', by_use)
