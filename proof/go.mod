module github.com/holdfast-go/holdfast/proof

go 1.25.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/redisstore v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.20.0
	github.com/yuin/gopher-lua v1.1.1
	golang.org/x/sys v0.43.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)

replace (
	github.com/holdfast-go/holdfast => ../
	github.com/holdfast-go/holdfast/redisstore => ../redisstore
)
