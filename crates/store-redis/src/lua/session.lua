-- A session. KEYS[1] is its row: when it was last used (or until when its use is recorded), when it was created, which process
-- uses it, the digest of its principal, and the sealed record. ARGV[3] to ARGV[5]: the limits on idleness and age, and
-- the process that calls.
local idle, absolute, writer = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local row = redis.call('GET', KEYS[1])
local used, created, last_writer, owner = 0, 0, writer, ''
if row then used, created, last_writer, owner = struct.unpack('<I8I8c8c16', row) end
local sealed = row and string.sub(row, 41)
local expires = math.min(used + idle, created + absolute)
if last_writer ~= writer then expires = expires + MARGIN end
local is_alive = row and now < expires

-- The process that uses the session from now on. A session that a second process has used belongs to none of them.
local SHARED = string.rep('\0', 8)
local used_by = last_writer == writer and writer or SHARED

-- How long Redis keeps the row: longer than any process takes the session for alive.
local function time_to_live(used_at)
  return math.max(1, math.min(used_at + idle, created + absolute) - now + MARGIN + 60000)
end
