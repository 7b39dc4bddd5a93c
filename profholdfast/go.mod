module github.com/holdfast-go/holdfast/profholdfast

go 1.25.0

require (
	github.com/google/pprof v0.0.0-20250317173921-a4b03ec1a45e
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
)

replace github.com/holdfast-go/holdfast => ../
