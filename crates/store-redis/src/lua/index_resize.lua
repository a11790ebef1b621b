-- ARGV: 3 the digest of an id, 4 the digest of its principal, 5 the new size of its record, 6 the limit on the size of all records.
local entry = redis.call('HGET', entries, ARGV[3])
if not entry then return 'missing' end
local before, owner = struct.unpack('<I4c16', entry)
if owner ~= ARGV[4] then return 'missing' end
local size = tonumber(ARGV[5])
local sizes = tonumber(redis.call('GET', total_size) or 0)
-- An update that shrinks the record is always accepted.
if sizes - before + size > math.max(sizes, tonumber(ARGV[6])) then return 'full' end
redis.call('HSET', entries, ARGV[3], struct.pack('<I4', size) .. string.sub(entry, 5))
redis.call('INCRBY', total_size, size - before)
return 'resized'
