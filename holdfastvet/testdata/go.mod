module example.com/uses

go 1.25.0

require github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000

replace github.com/holdfast-go/holdfast => ../../
