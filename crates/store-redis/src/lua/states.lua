-- The states of handlers, in one slot. KEYS[1] has the states by the number of their last use, KEYS[2] that number; there is the same
-- set for each principal. A member is the digest of the handle and that of the principal. A state's row has when it was last
-- used, when it was created, which process wrote that, the digest of its principal, its version, its lifetime, and the sealed
-- value. ARGV[3] to ARGV[5]: the limits on idleness and age, and the process that calls.
local by_use = KEYS[1]
local idle, absolute, writer = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local base = string.sub(by_use, 1, -4)

local function row_of(key) return base .. 'state:' .. hex(key) end
local function of_principal(owner) return base .. 'principal:' .. hex(owner) end

local function read(key)
  local row = redis.call('GET', row_of(key))
  if not row then return nil end
  local state = { sealed = string.sub(row, 50) }
  state.used, state.created, state.writer, state.owner, state.version, state.lifetime =
    struct.unpack('<I8I8c8c16I8c1', row)
  local expires = state.created + absolute
  if state.lifetime == 'i' then expires = math.min(expires, state.used + idle) end
  if state.writer ~= writer then expires = expires + MARGIN end
  if now >= expires then return nil end
  return state
end

local function remove(member)
  redis.call('ZREM', by_use, member)
  redis.call('ZREM', of_principal(string.sub(member, 17)), member)
  redis.call('DEL', row_of(string.sub(member, 1, 16)))
end

-- Stores the state with its use; of one that is only used, the value is not written again.
local function write(key, state, is_used_only)
  local expires = state.created + absolute
  if state.lifetime == 'i' then expires = math.min(expires, state.used + idle) end
  local header = struct.pack('<I8I8c8c16I8c1', state.used, state.created, writer, state.owner, state.version, state.lifetime)
  local row = row_of(key)
  if is_used_only then
    redis.call('SETRANGE', row, 0, header)
  else
    redis.call('SET', row, header .. state.sealed)
  end
  redis.call('PEXPIRE', row, math.max(1, expires - now + MARGIN + 60000))
  local member, own = key .. state.owner, of_principal(state.owner)
  local use = redis.call('INCR', KEYS[2])
  redis.call('ZADD', by_use, use, member)
  redis.call('ZADD', own, use, member)
  for _, shared in ipairs({ by_use, KEYS[2], own }) do redis.call('PEXPIRE', shared, absolute + idle + 3600000) end
end
