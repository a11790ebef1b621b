-- Returns up to ARGV[3] sessions that are due for a check, and the number of sessions.
return { redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, ARGV[3]), redis.call('ZCARD', due) }
