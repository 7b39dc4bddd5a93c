package engine

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind (trap 33), or when a hold has changed what all
// holds share.
func TestMain(m *testing.M) {
	code := leak.Main(m)
	if nothingRare != (rareState{}) {
		fmt.Fprintln(os.Stderr, "a hold has changed what all holds share")
		code = 1
	}
	os.Exit(code)
}
