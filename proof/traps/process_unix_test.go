//go:build unix

package traps_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Traps 3 and 39: a holder that was stopped past its lease, and goes on, sees at once that it is
// lost; its late release does not touch the next holder.
func TestLeaseProcessStoppedIsLost(t *testing.T) {
	t.Parallel()
	srv, _ := harness.Proxied(t)
	holder := harness.Child("TestChildHolds", "HOLDFAST_ADDR="+srv.Addr())
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	lines := bufio.NewScanner(out)
	said := func(word string) string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), word+" "); ok {
				return text
			}
		}
		t.Fatalf("the holder ended without saying %q", word)
		return ""
	}
	said("held")

	if err := holder.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n"))
	if err := holder.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(in, "go on"); err != nil {
		t.Fatal(err)
	}
	if got := said("err"); got != "true" {
		t.Errorf("its lease was lost: %s", got)
	}
	if got := said("released"); got != "true" {
		t.Errorf("its release said that it was lost: %s", got)
	}
	if err := harness.Checked(t, next); err != nil {
		t.Errorf("the next holder: %v", err)
	}
	harness.Release(t, next)
}

// TestChildHolds is the holder of TestLeaseProcessStoppedIsLost.
func TestChildHolds(t *testing.T) {
	harness.OnlyChild(t)
	lease := harness.Lock(t, harness.Locker(t, os.Getenv("HOLDFAST_ADDR"), harness.Brief(500*time.Millisecond)).Mutex("n"))
	fmt.Println("held", lease.Token())
	in := bufio.NewScanner(os.Stdin)
	in.Scan() // stopped meanwhile
	fmt.Println("err", errors.Is(lease.Err(), holdfast.ErrLost))
	fmt.Println("released", errors.Is(lease.Release(), holdfast.ErrLost))
}
