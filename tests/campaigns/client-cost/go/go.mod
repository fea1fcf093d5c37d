module weir/client-cost

go 1.26.8

require github.com/willscott/go-nfs-client v0.0.0-20251022144359-801f10d98886

require github.com/rasky/go-xdr v0.0.0-20170124162913-1a41d1a06c93 // indirect
