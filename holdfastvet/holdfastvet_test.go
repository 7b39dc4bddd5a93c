package holdfastvet

import (
	"os"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// Each folder has what its analyzer reports, and what none may report. All of them read the folders
// at once: most of the time goes to reading the standard library.
func TestAnalyzers(t *testing.T) {
	all := &analysis.Analyzer{Name: "all", Doc: "all analyzers",
		Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			for _, a := range Analyzers() {
				if _, err := a.Run(pass); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}}
	analysistest.Run(t, analysistest.TestData(), all, "./...")
}
