package holdfastvet

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// Each folder has what its analyzer reports, and what it must not.
func TestAnalyzers(t *testing.T) {
	for _, a := range Analyzers() {
		t.Run(a.Name, func(t *testing.T) {
			analysistest.Run(t, analysistest.TestData(), a, "./"+a.Name[len("holdfast"):])
		})
	}
}
