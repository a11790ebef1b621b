-- The index of all sessions, in one slot. KEYS[1] has the digests of their ids by when each is next checked for expiry, KEYS[2] an
-- entry for each (the size of its record, the digest of its principal, and its sealed id), and KEYS[3] the size of all records.
-- There is a set for each principal, with the digest of the principal in its name.
local due, entries, total_size = KEYS[1], KEYS[2], KEYS[3]

local function of_principal(owner)
  return string.sub(due, 1, -4) .. 'principal:' .. hex(owner)
end

-- Returns the sealed id of the removed entry.
local function remove(member)
  local entry = redis.call('HGET', entries, member)
  redis.call('ZREM', due, member)
  if not entry then return false end
  local size, owner = struct.unpack('<I4c16', entry)
  redis.call('HDEL', entries, member)
  redis.call('DECRBY', total_size, size)
  redis.call('SREM', of_principal(owner), member)
  return string.sub(entry, 21)
end
