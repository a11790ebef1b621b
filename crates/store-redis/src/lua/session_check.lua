-- Removes the session if it is expired, and returns 0 then; otherwise returns when it expires.
if is_alive then return expires end
redis.call('DEL', KEYS[1])
return 0
