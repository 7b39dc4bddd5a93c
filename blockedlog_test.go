package holdfast_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A blockedLog is the handler of a log whose reader has stopped. Each line blocks until the reader
// reads on.
type blockedLog struct {
	lines  atomic.Int32
	last   atomic.Value // the text of the last line
	readOn chan struct{}
	reads  func() // makes the reader read on
}

func (l *blockedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *blockedLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *blockedLog) WithGroup(string) slog.Handler            { return l }

func (l *blockedLog) Handle(_ context.Context, line slog.Record) error {
	l.lines.Add(1)
	l.last.Store(line.Message)
	<-l.readOn
	return nil
}

// onBlockedLog runs a test with a client whose log blocks.
func onBlockedLog(t *testing.T, p protocol.Protocol, config holdfast.Config, test func(*testing.T, *holdfast.Client, *blockedLog)) {
	t.Helper()
	log := &blockedLog{readOn: make(chan struct{})}
	log.reads = sync.OnceFunc(func() { close(log.readOn) })
	config.Label, config.Logger = "blocked", slog.New(log)
	client, err := holdfast.NewOn(p, &config)
	must(t, err)
	test(t, client, log)
	log.reads()
	must(t, client.Close())
}

func isDone(lease *holdfast.Lease) bool {
	select {
	case <-lease.Done():
		return true
	default:
		return false
	}
}

// All holders are told of a loss in time, although the log that is told of slow leases blocks.
func TestBlockedLogDelaysNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		onBlockedLog(t, server.Connect("p"), holdfast.Config{SlowHold: time.Second}, func(t *testing.T, client *holdfast.Client, log *blockedLog) {
			var leases []*holdfast.Lease
			for _, name := range []string{"a", "b", "c"} {
				lease, err := client.Mutex(name, holdfast.WithTTL(3*time.Second), holdfast.WithoutRenewal()).Lock(t.Context())
				must(t, err)
				leases = append(leases, lease)
				lease.Done()
			}
			<-time.After(3 * time.Second)
			synctest.Wait()
			for _, lease := range leases {
				if !isDone(lease) {
					t.Errorf("the holder of %q is not told after its TTL", lease.Name())
				}
				if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
					t.Errorf("Release of %q: %v", lease.Name(), err)
				}
			}
			if log.lines.Load() == 0 {
				t.Error("nothing was logged, so nothing could block")
			}
		})
	})
}

// A release gives the lock back, although the log that is told of the end of a slow lease blocks.
func TestBlockedLogDelaysNoRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		onBlockedLog(t, server.Connect("p"), holdfast.Config{SlowHold: time.Second}, func(t *testing.T, client *holdfast.Client, _ *blockedLog) {
			lease, err := client.Mutex("m").Lock(t.Context())
			must(t, err)
			<-time.After(1500 * time.Millisecond)
			released := make(chan error, 1)
			go func() { released <- lease.Release() }()
			synctest.Wait()
			select {
			case err := <-released:
				must(t, err)
			default:
				t.Error("the release waits for the log")
			}
			if names := server.Names("p"); len(names) > 0 {
				t.Errorf("%q are held after the release", names)
			}
		})
	})
}

// A brokenRenewal is a connection whose next renewals fail.
type brokenRenewal struct {
	*memory.Client
	broken atomic.Bool
}

func (b *brokenRenewal) Renew(ctx context.Context, renewals []protocol.Renewal, done func(int, protocol.Renewed)) {
	if !b.broken.Load() {
		b.Client.Renew(ctx, renewals, done)
		return
	}
	for i := range renewals {
		done(i, protocol.Renewed{Err: &protocol.Failure{Op: "renew", Reason: protocol.NoAnswer, Unknown: true, Err: errors.New("cut off")}})
	}
}

// Leases live on after a renewal that failed, although the log that is told of the failure blocks.
func TestBlockedLogLosesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		broken := &brokenRenewal{Client: server.Connect("p")}
		onBlockedLog(t, broken, holdfast.Config{}, func(t *testing.T, client *holdfast.Client, log *blockedLog) {
			var leases []*holdfast.Lease
			for _, name := range []string{"a", "b"} {
				lease, err := client.Mutex(name, holdfast.WithTTL(3*time.Second)).Lock(t.Context())
				must(t, err)
				leases = append(leases, lease)
			}
			broken.broken.Store(true)
			<-time.After(1050 * time.Millisecond)
			broken.broken.Store(false)
			<-time.After(10 * time.Second)
			for _, lease := range leases {
				must(t, lease.Err())
				must(t, lease.Release())
			}
			if log.lines.Load() == 0 {
				t.Error("nothing was logged, so nothing could block")
			}
		})
	})
}

// A log that reads on after it blocked is told how many lines there was no room for.
func TestBlockedLogCountsWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		onBlockedLog(t, server.Connect("p"), holdfast.Config{SlowHold: time.Second}, func(t *testing.T, client *holdfast.Client, log *blockedLog) {
			for i := range 1101 {
				_, err := client.Mutex(strconv.Itoa(i)).Lock(t.Context())
				must(t, err)
			}
			<-time.After(1500 * time.Millisecond)
			log.reads()
			synctest.Wait()
			if lines := log.lines.Load(); lines < 1001 || lines > 1002 {
				t.Errorf("%d lines came, want the 1,000 that waited, one that may have blocked, and one about the others", lines)
			}
			if text, _ := log.last.Load().(string); text != "holdfast: the log was too slow" {
				t.Errorf("the last line is %q", text)
			}
		})
	})
}
