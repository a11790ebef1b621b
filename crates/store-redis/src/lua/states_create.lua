-- ARGV: 6 the digest of the handle, 7 that of the principal, 8 the lifetime, 9 the limit on states and 10 on those of the principal
-- (or -1), 11 the sealed value. Returns whether it is stored now, and the number of states.
local key, owner = ARGV[6], ARGV[7]
local total, quota = tonumber(ARGV[9]), tonumber(ARGV[10])
local found = read(key)
if found then return { found.sealed == ARGV[11] and 1 or 0, redis.call('ZCARD', by_use) } end
for _, member in ipairs(redis.call('ZRANGE', by_use, 0, 7)) do
  if not read(string.sub(member, 1, 16)) then remove(member) end
end
if total > 0 and quota ~= 0 then
  local own = of_principal(owner)
  if quota > 0 and redis.call('ZCARD', own) >= quota then remove(redis.call('ZRANGE', own, 0, 0)[1]) end
  if redis.call('ZCARD', by_use) >= total then remove(redis.call('ZRANGE', by_use, 0, 0)[1]) end
  write(key, { used = now, created = now, owner = owner, version = 0, lifetime = ARGV[8], sealed = ARGV[11] })
end
return { 1, redis.call('ZCARD', by_use) }
