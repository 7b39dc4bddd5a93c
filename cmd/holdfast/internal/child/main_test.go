package child

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails if a goroutine is left.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
