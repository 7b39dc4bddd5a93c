module github.com/holdfast-go/holdfast/holdfastvet

go 1.25.0

require golang.org/x/tools v0.39.0

require (
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	golang.org/x/mod v0.30.0 // indirect
	golang.org/x/sync v0.18.0 // indirect
)

replace github.com/holdfast-go/holdfast => ../
