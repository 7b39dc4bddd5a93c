package steps

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each process ends a second later under -race
	os.Exit(leak.Main(m))
}
