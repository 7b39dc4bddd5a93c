package hold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// With a short TTL, the time of a request can be over while the client still connects. Such a
// server is asked again. A server that refuses the connection, or the user, is not.
func TestUnanswered(t *testing.T) {
	late := fmt.Errorf("dial: %w", context.DeadlineExceeded)
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&holdfast.StoreError{Kind: holdfast.StoreNoAnswer, Err: late}, true},
		{&holdfast.StoreError{Kind: holdfast.StoreUnreachable, Err: late}, true},
		{&holdfast.StoreError{Kind: holdfast.StoreUnreachable, Err: fmt.Errorf("read: %w", os.ErrDeadlineExceeded)},
			true},
		{&holdfast.StoreError{Kind: holdfast.StoreUnreachable, Err: refused}, false},
		{&holdfast.QuorumError{Masters: []lockinfo.Master{{Counts: true},
			{Err: &holdfast.StoreError{Kind: holdfast.StoreNoAnswer, Err: late}}}}, true},
		{&holdfast.QuorumError{Masters: []lockinfo.Master{{},
			{Err: &holdfast.StoreError{Kind: holdfast.StoreUnreachable, Err: refused}}}}, false},
		{&holdfast.StoreError{Kind: holdfast.StoreDenied, Err: errors.New("WRONGPASS")}, false},
		{&holdfast.HeldError{}, false},
		{nil, false},
	} {
		if got := isUnanswered(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// The texts name the holder, or what keeps others out, and have no empty name.
func TestTextsNameTheHolder(t *testing.T) {
	r := Run{Conflict: cli.ExitBusy}
	r.Redis, r.Names = "redis://localhost", []string{"n"}
	for _, c := range []struct {
		held          holdfast.HeldError
		refused, line string
	}{
		{holdfast.HeldError{Name: "n", Kind: "mutex", Holder: "me", Holders: 1, Remaining: time.Second, Waiters: 2},
			`mutex "n" is held by "me" since unknown, 1s left unless renewed, 2 waiting`,
			`holdfast: waiting for "n": held by me, for 1s unless renewed; 2 before us`},
		{holdfast.HeldError{Name: "n", Kind: "mutex", Holders: 1, Remaining: time.Second,
			Remainder: lockinfo.StateMinHold},
			`mutex "n" is released, and kept from others by its min hold for another 1s, 0 waiting`,
			`holdfast: waiting for "n": kept from others by a min hold for 1s; 0 before us`},
		{holdfast.HeldError{Name: "n", Kind: "mutex", Holders: 1, Remaining: time.Second,
			Remainder: lockinfo.StateBroken, BrokenBy: "ops"},
			`mutex "n" is broken by "ops", and kept from others for another 1s, 0 waiting`,
			`holdfast: waiting for "n": broken by ops, and kept from others for 1s; 0 before us`},
		{holdfast.HeldError{Name: "n", Kind: "mutex", Holders: 1, Remaining: time.Second},
			`mutex "n" is kept from others for another 1s, 0 waiting`,
			`holdfast: waiting for "n": kept from others for 1s; 0 before us`},
	} {
		if got := r.refusal(&c.held).Error(); got != c.refused {
			t.Errorf("got  %s\nwant %s", got, c.refused)
		}
		if got := statusText(&c.held, 0); got != c.line {
			t.Errorf("got  %s\nwant %s", got, c.line)
		}
	}
}
