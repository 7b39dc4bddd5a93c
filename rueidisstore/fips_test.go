package rueidisstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/rueidisstore"
)

// Trap 30: it runs where SHA-1 is refused.
func TestUnderFIPS(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildLocks$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), "GODEBUG=fips140=only", "HOLDFAST_ADDR="+redisserver.Start(t).Addr())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "locked and released") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestChildLocks is what TestUnderFIPS runs.
func TestChildLocks(t *testing.T) {
	addr := os.Getenv("HOLDFAST_ADDR")
	if addr == "" {
		t.Skip("a part of another test")
	}
	c, err := holdfast.New(rueidisstore.New(client(t, addr)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	lease, err := c.Mutex("n").Lock(within(t, 20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("locked and released")
}
