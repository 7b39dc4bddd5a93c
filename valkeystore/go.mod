module github.com/holdfast-go/holdfast/valkeystore

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/valkey-io/valkey-go v1.0.67
)

require golang.org/x/sys v0.31.0 // indirect

replace github.com/holdfast-go/holdfast => ../
