-- Returns the time of this call and all events of the session.
return { now, redis.call('LRANGE', KEYS[1], 0, -1) }
