-- ARGV[6] is the digest of the principal, ARGV[7] within what time a session that is in use is written. Removes the session of that
-- principal, unless another process has used it too and may still be using it. Returns whether it is gone.
if not row then return 1 end
if owner ~= ARGV[6] or (last_writer ~= writer and now <= used + tonumber(ARGV[7])) then return 0 end
redis.call('DEL', KEYS[1])
return 1
