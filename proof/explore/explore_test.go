package explore

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// No rule is broken in any state of any world.
func TestWorlds(t *testing.T) {
	worlds := SmallWorlds()
	if os.Getenv("HOLDFAST_PROOF") == "1" {
		worlds = LargeWorlds()
	}
	for _, w := range worlds {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			r := w.Explore()
			t.Log(r)
			if r.Broken != nil {
				t.Errorf("%v\n%s\nHOLDFAST_STORY=%q", r.Broken, &r.Story, w.Name+"|"+r.Story.Code)
			}
		})
	}
}
