module github.com/holdfast-go/holdfast/proof

go 1.25.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/anishathalye/porcupine v1.3.1
	github.com/chromedp/chromedp v0.14.2
	github.com/go-co-op/gocron/v2 v2.12.1
	github.com/go-sql-driver/mysql v1.9.3
	github.com/google/pprof v0.0.0-20250317173921-a4b03ec1a45e
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/fence v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/gocronholdfast v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/holdfasttest v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/otelholdfast v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/profholdfast v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/promholdfast v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/redisstore v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/rueidisstore v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/valkeystore v0.0.0-00010101000000-000000000000
	github.com/jackc/pgx/v5 v5.10.0
	github.com/jonboulle/clockwork v0.4.0
	github.com/prometheus/client_golang v1.20.0
	github.com/prometheus/client_model v0.6.1
	github.com/redis/go-redis/v9 v9.20.0
	github.com/redis/rueidis v1.0.60
	github.com/valkey-io/valkey-go v1.0.67
	github.com/yuin/gopher-lua v1.1.1
	go.opentelemetry.io/otel v1.36.0
	go.opentelemetry.io/otel/metric v1.36.0
	go.opentelemetry.io/otel/sdk v1.36.0
	go.opentelemetry.io/otel/sdk/metric v1.36.0
	golang.org/x/sys v0.43.0
	modernc.org/sqlite v1.50.0
	pgregory.net/rapid v1.3.0
)

require (
	filippo.io/edwards25519 v1.1.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/chromedp/cdproto v0.0.0-20250724212937-08a3db8b4327
	github.com/chromedp/sysutil v1.1.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-json-experiment/json v0.0.0-20250725192818-e39067aee2d2 // indirect
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/gobwas/httphead v0.1.0 // indirect
	github.com/gobwas/pool v0.2.1 // indirect
	github.com/gobwas/ws v1.4.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	github.com/klauspost/compress v1.17.9 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/prometheus/common v0.55.0 // indirect
	github.com/prometheus/procfs v0.15.1 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
	go.opentelemetry.io/otel/trace v1.36.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/exp v0.0.0-20240613232115-7f521ea00fb8 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/text v0.29.0 // indirect
	google.golang.org/protobuf v1.34.2 // indirect
	modernc.org/libc v1.72.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
)

replace (
	github.com/holdfast-go/holdfast => ../
	github.com/holdfast-go/holdfast/fence => ../fence
	github.com/holdfast-go/holdfast/gocronholdfast => ../gocronholdfast
	github.com/holdfast-go/holdfast/holdfasttest => ../holdfasttest
	github.com/holdfast-go/holdfast/otelholdfast => ../otelholdfast
	github.com/holdfast-go/holdfast/profholdfast => ../profholdfast
	github.com/holdfast-go/holdfast/promholdfast => ../promholdfast
	github.com/holdfast-go/holdfast/redisstore => ../redisstore
	github.com/holdfast-go/holdfast/rueidisstore => ../rueidisstore
	github.com/holdfast-go/holdfast/valkeystore => ../valkeystore
)
