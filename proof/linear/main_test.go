package linear

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/proof/leak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := leak.Check(30 * time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
