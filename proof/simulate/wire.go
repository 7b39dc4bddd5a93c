package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// A wire is the network between one client and one server.
type wire struct{ *network.Network }

func newWire(latency time.Duration, host *host, quorum bool) *wire {
	config := network.Config{Latency: latency}
	if quorum { // there a connection that has lost something breaks in the end
		config.Breaks = 15 * time.Second
	}
	return &wire{network.New(host.serve, config)}
}

// dial connects for go-redis.
func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if isReconnect() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	conn, err := w.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return checked{conn}, nil
}

// isReconnect reports whether a PubSub of go-redis dials anew by itself. It does so under a mutex
// on which others may wait, and while somebody waits for a mutex, a bubble's clock stands still,
// for ever if that is for a timer. The adapter throws such a PubSub away and makes another, whether
// that dial succeeds or not.
func isReconnect() bool {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "(*PubSub).reconnect") {
			return true
		}
		if !more {
			return false
		}
	}
}

// isScript matches the requests that faults strike.
var isScript = network.Contains("EVAL")

// isMessage matches what LoseMessages loses.
func isMessage(data []byte) bool {
	return bytes.Contains(data, []byte("$7\r\nmessage\r\n")) && !bytes.Contains(data, []byte("subscribe"))
}

// disturb begins a fault of the network, and returns its end.
func (w *wire) disturb(f *Fault) (end func()) {
	switch f.Kind {
	case Silence:
		ways := []network.Way{f.Way}
		if f.Both {
			ways = append(ways, 1-f.Way)
		}
		w.Silence(ways...)
		return func() { w.Speak(ways...) }
	case Slow:
		w.Slow(f.Delay)
		return func() { w.Slow(-f.Delay) }
	case LoseMessages:
		return w.Strike(network.Rule{Way: network.Back, Match: isMessage, Times: -1, Do: network.Lose})
	case Duplicate:
		return w.Strike(network.Rule{
			Match: isScript, Times: f.Times, Do: network.Repeat, Late: f.Delay,
			Prefix: []byte("*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$5\r\nagain\r\n"),
		})
	case LoseRest:
		rule := network.Rule{Match: isScript, Times: f.Times, Do: network.Deafen}
		if f.Way == network.Back {
			rule.Do = network.Mute
		}
		return w.Strike(rule)
	}
	panic(fmt.Sprint("no such trouble: ", f.Kind))
}

// A checked is a connection of which go-redis' pool sees, as at a socket, that it has broken while
// it was idle. Else each broken one would cost a request, and its pause.
type checked struct{ net.Conn }

// SyscallConn implements syscall.Conn.
func (c checked) SyscallConn() (syscall.RawConn, error) {
	if err := c.Conn.(interface{ Broken() error }).Broken(); err != nil {
		return nil, err
	}
	return sound{}, nil
}

// sound is what a look at a connection finds that is in order: nothing to read.
type sound struct{}

func (sound) Control(func(uintptr)) error    { return nil }
func (sound) Read(func(uintptr) bool) error  { return nil }
func (sound) Write(func(uintptr) bool) error { return nil }
