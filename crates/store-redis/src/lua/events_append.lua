-- ARGV: 6 the token of this call, which finds its own effect if it is repeated, 7 the limit on age, 8 on the number and 9 on the
-- size of a session's events, 10 on the size of all, 11 the fence of the claim under which the events are appended, or empty; then for
-- each event its stream and position, the size of its data and the sealed event. Returns 2 if the claim was lost.
local token = ARGV[6]
local age, most, most_data, most_size = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])

local function has_room(length)
  return most > 0 and length <= most_data and session_cost + event_cost + length <= most_size
end

local function make_room(length)
  local count, data = size_of(own)
  while count >= most or data > most_data - length do
    drop_first(own)
    count, data = size_of(own)
  end
  local cost = session_cost + event_cost + length
  while tonumber(redis.call('HGET', totals, 'size') or 0) > most_size - cost do
    local oldest = redis.call('ZRANGE', order, 0, 0)[1]
    if not oldest then break end
    drop_first(oldest)
  end
end

local function push(position, length, sealed)
  local serial = redis.call('HINCRBY', totals, 'serial', 1)
  local count, data = size_of(own)
  local added = event_cost + length
  if count == 0 then
    redis.call('ZADD', order, serial, own)
    added = added + session_cost
  end
  redis.call('RPUSH', KEYS[1], struct.pack('<I8I8I4', serial, now, length) .. position .. sealed)
  redis.call('HINCRBY', totals, 'size', added)
  set_size(own, count + 1, data + length, token)
end

-- A replay without an event that is too large would have a gap, so the earlier events of its stream are dropped.
local function forget_stream(stream)
  local entries = redis.call('LRANGE', KEYS[1], 0, -1)
  local before = redis.call('HGET', sizes, own)
  forget(own)
  if not before then return end
  for _, entry in ipairs(entries) do
    if stream_of(entry) ~= stream then
      local count, data = size_of(own)
      local added = event_cost + length_of(entry)
      if count == 0 then
        redis.call('ZADD', order, serial_of(entry), own)
        redis.call('ZADD', last, now, own)
        added = added + session_cost
      end
      redis.call('RPUSH', KEYS[1], entry)
      redis.call('HINCRBY', totals, 'size', added)
      set_size(own, count + 1, data + length_of(entry), token)
    end
  end
end

local _, _, last_token = size_of(own)
if last_token == token then return 1 end
if ARGV[11] ~= '' then
  local fence = redis.call('HGET', KEYS[6], 'fence')
  if fence and fence ~= ARGV[11] then return 2 end
end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', last, '-inf', now - age, 'LIMIT', 0, 16)) do forget(member) end
for at = 12, #ARGV, 3 do
  local position, length = ARGV[at], tonumber(ARGV[at + 1])
  if has_room(length) then
    make_room(length)
    push(position, length, ARGV[at + 2])
  else
    forget_stream(string.sub(position, 1, 8))
  end
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('ZADD', last, now, own)
  redis.call('PEXPIRE', KEYS[1], age + MARGIN + 60000)
end
for _, key in ipairs({ order, last, sizes, totals }) do redis.call('PEXPIRE', key, age + 3600000) end
return 1
