// Command holdfastvet checks programs that use package holdfast, for go vet -vettool. See package
// holdfastvet.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/holdfast-go/holdfast/holdfastvet"
)

func main() { unitchecker.Main(holdfastvet.Analyzers()...) }
