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

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/network"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
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

// A client is one life of a process on a host of its own.
type client struct {
	*holdfast.Client
	wires []*wire // to each server
	rdbs  []*redis.Client
	name  string
	ctx   context.Context // ends with its life
	end   context.CancelFunc
	dead  bool // guarded by the ledger's mutex
}

// connect makes a client on a wire, which leads to a server at some address.
func connect(w *wire, address, name string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: address, Dialer: w.dial, ClientName: name, DisableIdentity: true,
		// Else the first connections ask for these under a mutex that others wait for, and the
		// bubble's clock stands still.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		PoolSize: 1000, // waiting for a turn uses timers that all bubbles would share
		// Connections come and go. What is written goes in one piece, which faults count as one
		// request.
		ReadBufferSize: 4 << 10,
	})
}

func newClient(wires []*wire, name string) (*client, error) {
	c := &client{wires: wires, name: name}
	var stores []store.Store
	for i, wire := range wires {
		rdb := connect(wire, fmt.Sprintf("127.0.0.1:%d", 6379+i), name) // by which a quorum tells its masters apart
		c.rdbs, stores = append(c.rdbs, rdb), append(stores, redisstore.New(rdb))
	}
	var err error
	if len(stores) == 1 {
		c.Client, err = holdfast.New(stores[0], &holdfast.Config{Label: name})
	} else {
		c.Client, err = holdfast.NewQuorum(stores, &holdfast.Config{Label: name, MaxTTL: longestTTL})
	}
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// close gives everything back, as far as the network lets it.
func (c *client) close() error {
	c.end()
	err := c.Close()
	for _, rdb := range c.rdbs {
		_ = rdb.Close()
	}
	return err
}

func sleep(d time.Duration) { <-time.After(max(d, 1)) }
