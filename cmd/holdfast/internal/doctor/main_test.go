package doctor

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// long skips a test that examines a server, which takes seconds: make proof runs it.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("long: only with HOLDFAST_PROOF=1")
	}
}
