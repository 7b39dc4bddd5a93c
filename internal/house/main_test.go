package house

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// All names of files are those from the root of the repository on.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(leak.Main(m))
}
