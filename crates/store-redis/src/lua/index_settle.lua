-- ARGV from 3 on are pairs: the digest of an id that was checked, and when the session expires, or 0 if it is over. Returns the
-- digests and sealed ids of the sessions that this call removed, and the number of sessions: each is removed by one call only.
local removed = {}
for at = 3, #ARGV, 2 do
  if ARGV[at + 1] == '0' then
    local id = remove(ARGV[at])
    if id then
      table.insert(removed, ARGV[at])
      table.insert(removed, id)
    end
  else
    redis.call('ZADD', due, 'XX', ARGV[at + 1], ARGV[at])
  end
end
return { removed, redis.call('ZCARD', due) }
