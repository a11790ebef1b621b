-- Returns the record and when it was created by the caller's clock; this is no use of the session.
if not is_alive then return false end
return { sealed, created - skew }
