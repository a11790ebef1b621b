-- The events of the sessions of one partition, in one slot. KEYS[1] is the list of one session's events, named by the digest of
-- its id. KEYS[2] has the sessions by the serial of their first event, KEYS[3] by the time of their last, KEYS[4] the number and
-- size of each session's events and the token of its last append, KEYS[5] the last serial and the size of all, and KEYS[6] the
-- claim to the session. ARGV[3] is the digest of the session's id, ARGV[4] what an event counts besides its data, and ARGV[5] what a
-- session counts.
local order, last, sizes, totals = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local own, event_cost, session_cost = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

local function list_of(member)
  return string.sub(KEYS[1], 1, -33) .. hex(member)
end

local function size_of(member)
  local packed = redis.call('HGET', sizes, member)
  if not packed then return 0, 0, '' end
  local count, data, token = struct.unpack('<I4I8c8', packed)
  return count, data, token
end

local function set_size(member, count, data, token)
  redis.call('HSET', sizes, member, struct.pack('<I4I8c8', count, data, token))
end

local function forget(member)
  local count, data = size_of(member)
  if count > 0 then
    redis.call('HINCRBY', totals, 'size', -(session_cost + count * event_cost + data))
  end
  redis.call('HDEL', sizes, member)
  redis.call('ZREM', order, member)
  redis.call('ZREM', last, member)
  redis.call('DEL', list_of(member))
end

-- An entry is its serial, the time, the size of the data, the stream, the position and the sealed event.
local function serial_of(entry) return (struct.unpack('<I8', entry)) end
local function time_of(entry) return (struct.unpack('<I8', entry, 9)) end
local function length_of(entry) return (struct.unpack('<I4', entry, 17)) end
local function stream_of(entry) return string.sub(entry, 21, 28) end

local function drop_first(member)
  local list = list_of(member)
  local first, following = redis.call('LPOP', list), redis.call('LINDEX', list, 0)
  if not first or not following then
    forget(member)
    return
  end
  local count, data, token = size_of(member)
  set_size(member, count - 1, data - length_of(first), token)
  redis.call('HINCRBY', totals, 'size', -(event_cost + length_of(first)))
  redis.call('ZADD', order, serial_of(following), member)
end
