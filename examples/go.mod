module github.com/holdfast-go/holdfast/examples

go 1.25.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/holdfast-go/holdfast v0.0.0
	github.com/holdfast-go/holdfast/fence v0.0.0
	github.com/holdfast-go/holdfast/holdfasttest v0.0.0
	github.com/holdfast-go/holdfast/redisstore v0.0.0
	github.com/jackc/pgx/v5 v5.10.0
	github.com/redis/go-redis/v9 v9.20.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sync v0.17.0 // indirect
	golang.org/x/text v0.29.0 // indirect
)

replace (
	github.com/holdfast-go/holdfast => ../
	github.com/holdfast-go/holdfast/fence => ../fence
	github.com/holdfast-go/holdfast/holdfasttest => ../holdfasttest
	github.com/holdfast-go/holdfast/redisstore => ../redisstore
)
