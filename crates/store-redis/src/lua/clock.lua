-- The time of this call by the clock of Redis. ARGV[1] is the time that the caller works with, ARGV[2] what its clock shows.
-- Clocks that differ by less than the tolerance count as equal; the time of any other is corrected by the difference. The margin
-- is given to rows that another process wrote last, so that two clocks within the tolerance never end one early.
local TOLERANCE, MARGIN = 5000, 10000
local time = redis.call('TIME')
local skew = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) - tonumber(ARGV[2])
if math.abs(skew) < TOLERANCE then skew = 0 end
local now = tonumber(ARGV[1]) + skew

local function hex(bytes)
  return (string.gsub(bytes, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end
