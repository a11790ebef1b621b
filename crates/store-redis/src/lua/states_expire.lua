-- Checks up to ARGV[7] states from the place ARGV[6] on, the least recently used first. Returns the place to go on from, or -1 if no
-- later state can be expired, and the number of states.
local from, most = tonumber(ARGV[6]), tonumber(ARGV[7])
local members = redis.call('ZRANGE', by_use, from, from + most - 1)
local following = #members < most and -1 or from + most
for _, member in ipairs(members) do
  local state = read(string.sub(member, 1, 16))
  if not state then
    remove(member)
    if following > 0 then following = following - 1 end
  elseif now < state.used + math.min(idle, absolute) then
    following = -1
    break
  end
end
return { following, redis.call('ZCARD', by_use) }
