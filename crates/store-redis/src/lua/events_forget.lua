forget(own)
redis.call('DEL', KEYS[6])
return 1
