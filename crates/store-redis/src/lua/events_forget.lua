forget(own)
return 1
