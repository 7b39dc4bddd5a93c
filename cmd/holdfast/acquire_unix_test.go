//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// fullPipe returns a pipe to which nothing more can be written.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for size := 1 << 12; size > 0; {
		if _, err := w.Write(make([]byte, size)); errors.Is(err, os.ErrDeadlineExceeded) {
			size /= 2
			_ = w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		}
	}
	return w
}

// A crash between the grant and the writing of the ticket costs the others one TTL, and no more.
func TestAcquireKilledBeforeItsTicket(t *testing.T) {
	long(t)
	const ttl = 2 * time.Second
	s := redisserver.Start(t)
	cmd, stderr := program(t, s, "acquire", "--ttl", ttl.String(), "job")
	cmd.Stdout = fullPipe(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the lock is held", func() bool {
		there, err := s.Do("EXISTS", "holdfast:{job}")
		return err == nil && there == int64(1)
	})
	killed := time.Now()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("it wrote its ticket: %v, %s", cmd.ProcessState, stderr)
	}
	next, stderr := program(t, s, "run", "-w", "30", "job", "--", "true")
	if err := next.Run(); err != nil {
		t.Fatalf("the next one: %v, %s", err, stderr)
	}
	if took := time.Since(killed); took > ttl+2*time.Second && measured() {
		t.Errorf("the next one ran after %v", took)
	} else {
		t.Logf("the next one ran after %v", took)
	}
}
