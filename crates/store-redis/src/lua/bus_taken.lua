-- KEYS: an inbox, and the size of what waits there. ARGV: pairs of the id and the size of a message that was read.
for at = 1, #ARGV, 2 do
  if redis.call('XDEL', KEYS[1], ARGV[at]) == 1 then redis.call('DECRBY', KEYS[2], ARGV[at + 1]) end
end
return 1
